//! The locks of the VM, in the order in which they are taken.
//!
//! | rank | class | protects | taken while holding |
//! |---|---|---|---|
//! | 5 | [`ObjectSize`] | an object's size, and changes of it that its store has not seen | nothing |
//! | 10–29 | of gates | whole spaces and pmaps, see [`crate::system::Gate`] | lower ranks |
//! | 20 | delayed invalidation | see [`crate::system::Invalidation`] | 10 |
//! | 30 | [`TreeSlot`] | the mappings in a slot, its leaf and PV tables, the break of a heap that ends there; forks may share it instead | 10 to 29 |
//! | 35 | reservation of swap space | see [`crate::system::Reservation`] | 10 to 30 |
//! | 36 | [`ObjectShard`] | the attachments of an object made on one CPU | 5 to 30 |
//! | 38 | [`PmapRoster`] | the pmap that has an address-space tag | 5 to 30 |
//! | 40 | [`PagePv`] | a page's PV list, its dirty bit | 20 to 30, or nothing (then 30 by try) |
//! | 42 | [`PvFamily`] | the slots that share a leaf table, its entries while there are several; walks over its members | 30, 40 |
//! | 43, 44 | of systems | chunks of PV entries, see [`crate::system::PvChunks`] | 30, 40 |
//! | 45 | [`FrameReservation`] | the owner of a reserved block of frames, and its unused frames | 10 to 40 |
//! | 50 | [`FrameCache`] | a CPU's frames | 10 to 40 |
//! | 60 | [`FramePool`] | a pool of free frames | 45, 50 |
//! | 70 | [`MemoryStore`] | part of a [`crate::pager::MemoryPager`] | the locks that sleep: 10 to 30 |
//!
//! The slots of a range are locked in ascending order of their addresses and held
//! together, and so are the lists of a superpage's pages; observers see only the first. Otherwise
//! two locks of one class or of one rank are never held together: not slots of two spaces, not the
//! lists of other pages; frame stealing goes from cache to cache with one lock at a time.
//!
//! A removal by the reverse map starts at 40 and needs 30, and the lists of the other pages if a
//! superpage maps the page: it only tries these, and if that fails it releases 40, takes 30 and
//! then 40 again, and looks again.
//!
//! Builds with debug assertions or feature `lock-order` check all this at run time, and
//! panic with both call sites where it is broken; feature `lock-profile` counts and
//! times. The locks have the same sizes in all builds. Systems rank their own classes, and an
//! embedder may rank its own locks among these.

use sync::adaptive::Adaptive;
use sync::lock_class;
use sync::obm::{Obm, RestrictedObm};
use sync::spin::{TestAndSet, Ticket};
use sync::watch::Watched;

lock_class!(
    /// An object's size. Held while it changes, across calls of its pager. Sleeps when its
    /// holder does.
    pub ObjectSize = "object size", rank 5
);
lock_class!(
    /// A slot of a space's tree. One byte in each slot; only few of the tasks that wait compete for
    /// it.
    pub TreeSlot = "slot", rank 30
);
lock_class!(
    /// An object's attachments of one CPU. Almost always taken by that CPU.
    pub ObjectShard = "object shard", rank 36
);
lock_class!(
    /// The pmap with an address-space tag. Held while a reference to a pmap is made, or taken out.
    pub PmapRoster = "pmap roster", rank 38
);
lock_class!(
    /// A page's PV list. One byte in each page.
    pub PagePv = "page pv", rank 40
);
lock_class!(
    /// The slots that share PV tables; the lock is in the first table. Only few of the tasks that
    /// wait compete for it.
    pub PvFamily = "pv family", rank 42
);
lock_class!(
    /// A block of frames that a slot has reserved. Almost always taken under the slot's lock.
    pub FrameReservation = "frame reservation", rank 45
);
lock_class!(
    /// A CPU's free frames. Almost always taken by that CPU.
    pub FrameCache = "frame cache", rank 50
);
lock_class!(
    /// A pool of free frames. Held for a few dozen instructions.
    pub FramePool = "frame pool", rank 60
);
lock_class!(
    /// A part of a store in memory. Held while a page is copied.
    pub MemoryStore = "memory pager", rank 70
);

pub(crate) type ResizeLock<M, T> = sync::Mutex<M, Watched<M, Adaptive<M>, ObjectSize>, T>;
pub(crate) type SlotLock<M> = Watched<M, RestrictedObm<M>, TreeSlot>;
pub(crate) type ShardLock<M, T> = sync::Mutex<M, Watched<M, TestAndSet<M>, ObjectShard>, T>;
pub(crate) type RosterLock<M, T> = sync::Mutex<M, Watched<M, TestAndSet<M>, PmapRoster>, T>;
/// A page's byte for [`PagePv`].
pub type PvLock<M> = Watched<M, Obm<M>, PagePv>;
pub(crate) type FamilyLock<M, T> = sync::Mutex<M, Watched<M, RestrictedObm<M>, PvFamily>, T>;
pub(crate) type FamilyGuard<'a, M, T> =
    sync::MutexGuard<'a, M, Watched<M, RestrictedObm<M>, PvFamily>, T>;
pub(crate) type ReservationLock<M, T> =
    sync::Mutex<M, Watched<M, TestAndSet<M>, FrameReservation>, T>;
pub(crate) type CacheLock<M, T> = sync::Mutex<M, Watched<M, TestAndSet<M>, FrameCache>, T>;
pub(crate) type PoolLock<M, T> = sync::Mutex<M, Watched<M, Ticket<M>, FramePool>, T>;
pub(crate) type StoreLock<M, T> = sync::Mutex<M, Watched<M, Adaptive<M>, MemoryStore>, T>;
