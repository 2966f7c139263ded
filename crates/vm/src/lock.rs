//! The locks of the VM, in the order in which they are taken.
//!
//! | order | lock | protects | taken while holding |
//! |---|---|---|---|
//! | 1 | [`SpaceLock`] | a space's regions | nothing |
//! | 2 | delayed invalidation | see [`crate::policy::Invalidation`] | 1 |
//! | 3 | [`PmapLock`] | a pmap's tables and PV chunks | 1, 2 |
//! | 4 | [`PvLock`] | a page's PV list, its dirty bit | 3, or nothing (then 3 by try) |
//! | 5 | [`CacheLock`] | a CPU's frames | 3, 4 |
//! | 6 | [`PoolLock`] | the global frame pool; free address-space tags | 5 |
//!
//! A removal by the reverse map starts at 4 and needs 3: it only tries, and if it
//! fails it lets 4 go, takes 3 and then 4 again, and looks anew. When it holds one
//! cache's lock, frame stealing only tries the others.

use sync::adaptive::Adaptive;
use sync::obm::Obm;
use sync::rwlock::SpinParkRw;
use sync::spin::{TestAndSet, Ticket};

/// Readers fault, writers change what is mapped.
pub(crate) type SpaceLock<M, T> = sync::RwLock<M, SpinParkRw<M>, T>;
/// Sleeps when its holder does.
pub(crate) type PmapLock<M, T> = sync::Mutex<M, Adaptive<M>, T>;
/// One byte in each page.
pub(crate) type PvLock<M> = Obm<M>;
/// Almost always its own CPU's.
pub(crate) type CacheLock<M, T> = sync::Mutex<M, TestAndSet<M>, T>;
/// Held for a few dozen instructions.
pub(crate) type PoolLock<M, T> = sync::Mutex<M, Ticket<M>, T>;
