//! Lock classes: locks with the same role, under one name.

use core::panic::Location;
use core::ptr::{from_ref, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU16, Ordering};

/// The most classes that there can be. Locks of further classes are counted together in a profile,
/// and their order is not checked.
pub const MAX_CLASSES: usize = 128;

/// The rule for a task that holds two locks of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// The task may not, except by [`crate::watch::Watched::lock_nested`].
    Never,
    /// The task may, if it acquires them at ascending addresses (all pages of a superpage).
    ByAddress,
    /// The task may; its code keeps an order of its own.
    Allowed,
}

/// A class of locks. Made by [`crate::lock_class!`].
pub trait LockClass: 'static {
    /// The name in reports.
    const NAME: &'static str;
    /// The place in the declared lock order, if it has one: a task that holds the lock may wait
    /// only for locks of greater rank.
    const RANK: Option<u16> = None;
    /// The rule for a task that holds two locks of this class.
    const NESTING: Nesting = Nesting::Never;

    /// The class at run time: always the same one.
    fn state() -> &'static ClassState;
}

/// Declares lock classes.
///
/// ```
/// use sync::lock_class;
/// lock_class!(pub PvList = "pv list");
/// lock_class!(pub PmapLock = "pmap", rank 20);
/// lock_class!(
///     /// Each page has one.
///     pub PageLock = "page", rank 30, nesting ByAddress
/// );
/// ```
#[macro_export]
macro_rules! lock_class {
    ($(#[$meta:meta])* $vis:vis $class:ident = $name:literal
     $(, rank $rank:literal)? $(, nesting $nesting:ident)? $(,)?) => {
        $(#[$meta])*
        #[doc = concat!("\n\nLock class \"", $name, "\".")]
        #[derive(Clone, Copy, Debug)]
        $vis enum $class {}

        impl $crate::watch::LockClass for $class {
            const NAME: &'static str = $name;
            $(const RANK: ::core::option::Option<u16> = ::core::option::Option::Some($rank);)?
            $(const NESTING: $crate::watch::Nesting = $crate::watch::Nesting::$nesting;)?

            fn state() -> &'static $crate::watch::ClassState {
                static STATE: $crate::watch::ClassState =
                    $crate::watch::ClassState::of::<$class>();
                &STATE
            }
        }
    };
}

/// A class at run time. Numbered at its first use.
#[derive(Debug)]
pub struct ClassState {
    name: &'static str,
    rank: Option<u16>,
    nesting: Nesting,
    /// 0 until numbered; then its index in [`CLASSES`], or [`NO_ROOM`].
    id: AtomicU16,
    /// Where a pinned task first waited for a lock of the class without sleeping; null for nowhere.
    pinned_wait: AtomicPtr<Location<'static>>,
    /// Where a lock that a task then held without a pin was first acquired; null for nowhere.
    unpinned_hold: AtomicPtr<Location<'static>>,
}

/// Two call sites that together can make a pinned task wait for a task that was preempted on its
/// CPU: where a lock of the class is waited for, and where one is acquired.
pub(super) type Preempted = [&'static Location<'static>; 2];

/// The id of classes beyond [`MAX_CLASSES`].
const NO_ROOM: u16 = u16::MAX;

/// The numbered classes. Place 0 stays empty: it stands for all classes without a number. Places
/// fill from the front and are never emptied.
static CLASSES: [AtomicPtr<ClassState>; MAX_CLASSES] =
    [const { AtomicPtr::new(null_mut()) }; MAX_CLASSES];

impl ClassState {
    /// The state of class `C`, for its static.
    pub const fn of<C: LockClass>() -> Self {
        ClassState {
            name: C::NAME,
            rank: C::RANK,
            nesting: C::NESTING,
            id: AtomicU16::new(0),
            pinned_wait: AtomicPtr::new(null_mut()),
            unpinned_hold: AtomicPtr::new(null_mut()),
        }
    }

    /// The name in reports.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The declared place in the lock order.
    pub fn rank(&self) -> Option<u16> {
        self.rank
    }

    /// How locks of this class nest.
    pub fn nesting(&self) -> Nesting {
        self.nesting
    }

    /// The class's number, 1 to [`MAX_CLASSES`] - 1, or 0 if there was no room for it.
    #[inline]
    pub fn id(&'static self) -> usize {
        // Relaxed: only the number matters; a reader of `CLASSES` acquires there.
        match self.id.load(Ordering::Relaxed) {
            0 => self.register(),
            NO_ROOM => 0,
            id => id as usize,
        }
    }

    /// Records that a pinned task waits for a lock of the class at `site`, and cannot sleep.
    /// Returns the call sites, if this is the first such wait and a lock was held without a pin
    /// before.
    pub(super) fn waits_pinned(&self, site: &'static Location<'static>) -> Option<Preempted> {
        let held = first(&self.pinned_wait, site, &self.unpinned_hold)?;
        Some([site, held])
    }

    /// Records that a task without a pin holds a lock of the class, acquired at `site`. Returns the
    /// call sites, if it is the first such task and a pinned task waited for a lock before.
    pub(super) fn holds_unpinned(&self, site: &'static Location<'static>) -> Option<Preempted> {
        let waited = first(&self.unpinned_hold, site, &self.pinned_wait)?;
        Some([waited, site])
    }

    #[cold]
    fn register(&'static self) -> usize {
        let this = from_ref(self).cast_mut();
        for (id, place) in CLASSES.iter().enumerate().skip(1) {
            // Two CPUs that register the same class try the same places in turn, so the second
            // finds the class that the first has put there. Release: pairs with the acquire in
            // `class`.
            let was =
                place.compare_exchange(null_mut(), this, Ordering::Release, Ordering::Relaxed);
            if was.is_ok() || was == Err(this) {
                self.id.store(id as u16, Ordering::Relaxed);
                return id;
            }
        }
        self.id.store(NO_ROOM, Ordering::Relaxed);
        0
    }
}

/// Records `site` in `own`; returns the site in `other` if `own` was empty.
#[inline]
fn first(
    own: &AtomicPtr<Location<'static>>,
    site: &'static Location<'static>,
    other: &AtomicPtr<Location<'static>>,
) -> Option<&'static Location<'static>> {
    // Relaxed: only null or not null counts.
    if !own.load(Ordering::Relaxed).is_null() {
        return None;
    }
    let site = from_ref(site).cast_mut();
    // SeqCst, both: of two tasks that record one site each, at least one sees the other's.
    own.compare_exchange(null_mut(), site, Ordering::SeqCst, Ordering::Relaxed)
        .ok()?;
    let other = other.load(Ordering::SeqCst);
    // SAFETY: null, or from a reference to a constant.
    unsafe { other.as_ref() }
}

/// The class with this number.
pub(crate) fn class(id: usize) -> Option<&'static ClassState> {
    // Acquire: pairs with the release in `register`.
    let class = CLASSES.get(id)?.load(Ordering::Acquire);
    // SAFETY: only references to statics are put there.
    unsafe { class.as_ref() }
}

/// The classes used so far, by number.
pub fn classes() -> impl Iterator<Item = &'static ClassState> {
    (1..MAX_CLASSES).map_while(class)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;

    struct Late;

    impl LockClass for Late {
        const NAME: &'static str = "late";
        fn state() -> &'static ClassState {
            Box::leak(Box::new(ClassState::of::<Late>()))
        }
    }

    /// The only test of this program that numbers classes: the table stays full.
    #[test]
    fn a_class_without_room_does_not_look_for_it_again() {
        let last = (0..MAX_CLASSES)
            .map(|_| Late::state())
            .find(|c| c.id() == 0);
        let last = last.expect("one has no number");
        assert_eq!(last.id.load(Ordering::Relaxed), NO_ROOM);
        assert_eq!(last.id(), 0);
    }
}
