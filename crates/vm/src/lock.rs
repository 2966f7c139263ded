//! The locks of the VM, in the order in which they are taken.
//!
//! | rank | class | protects | taken while holding |
//! |---|---|---|---|
//! | 10 | [`SpaceMap`] | a space's regions | nothing |
//! | 20 | delayed invalidation | see [`crate::policy::Invalidation`] | 10 |
//! | 20 | reservation of swap space | see [`crate::policy::Reservation`] | 10 |
//! | 30 | [`PmapTables`] | a pmap's tables and PV chunks | 10, 20 |
//! | 40 | [`PagePv`] | a page's PV list, its dirty bit | 20, 30, or nothing (then 30 by try) |
//! | 50 | [`FrameCache`] | a CPU's frames | 10 to 40 |
//! | 60 | [`FramePool`] | the global frame pool | 50 |
//! | 60 | [`AsidPool`] | free address-space tags | nothing |
//!
//! A removal by the reverse map starts at 40 and needs 30: it only tries, and if it
//! fails it lets 40 go, takes 30 and then 40 again, and looks anew. Two locks of one
//! class or of one rank are never held together: not the maps of two spaces, not the
//! lists of two pages; frame stealing goes from cache to cache with one lock at a time.
//!
//! Builds with debug assertions or feature `lock-order` check all this at run time, and
//! panic with both call sites where it is broken; feature `lock-profile` counts and
//! times. The locks have the same sizes in all builds. What policies rank 20 are their
//! own classes; an embedder may rank locks of his among these.

use sync::adaptive::Adaptive;
use sync::lock_class;
use sync::obm::Obm;
use sync::rwlock::SpinParkRw;
use sync::spin::{TestAndSet, Ticket};
use sync::watch::Watched;

lock_class!(
    /// A space's regions. Readers fault, writers change what is mapped.
    pub SpaceMap = "space map", rank 10
);
lock_class!(
    /// A pmap's page tables and PV chunks. Sleeps when its holder does.
    pub PmapTables = "pmap", rank 30
);
lock_class!(
    /// A page's PV list. One byte in each page.
    pub PagePv = "page pv", rank 40
);
lock_class!(
    /// A CPU's free frames. Almost always taken by that CPU.
    pub FrameCache = "frame cache", rank 50
);
lock_class!(
    /// The global pool of free frames. Held for a few dozen instructions.
    pub FramePool = "frame pool", rank 60
);
lock_class!(
    /// The unused address-space tags.
    pub AsidPool = "asid pool", rank 60
);

pub(crate) type SpaceLock<M, T> = sync::RwLock<M, Watched<M, SpinParkRw<M>, SpaceMap>, T>;
pub(crate) type PmapLock<M, T> = sync::Mutex<M, Watched<M, Adaptive<M>, PmapTables>, T>;
pub(crate) type PvLock<M> = Watched<M, Obm<M>, PagePv>;
pub(crate) type CacheLock<M, T> = sync::Mutex<M, Watched<M, TestAndSet<M>, FrameCache>, T>;
pub(crate) type PoolLock<M, T> = sync::Mutex<M, Watched<M, Ticket<M>, FramePool>, T>;
pub(crate) type AsidLock<M, T> = sync::Mutex<M, Watched<M, Ticket<M>, AsidPool>, T>;
