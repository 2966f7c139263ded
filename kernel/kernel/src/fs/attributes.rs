//! The attributes of an inode: owner, number of names, times.

use super::caller;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use machine::Clock;
use metal::Metal;

/// The attributes of an inode. Each guards no other memory: relaxed.
pub struct Attributes {
    /// The number of its names.
    pub links: AtomicU32,
    /// True if it may get a name although it has none, because it was made without one.
    pub is_nameless: AtomicBool,
    /// The owner.
    pub user: AtomicU32,
    /// The group.
    pub group: AtomicU32,
    /// The time of its last access, as far as a program has set it; nanoseconds since 1970.
    pub accessed: AtomicU64,
    /// When its content changed.
    pub modified: AtomicU64,
    /// When its content or its attributes changed.
    pub changed: AtomicU64,
}

impl Attributes {
    /// The attributes of a new inode without a name, which is the calling task's.
    pub fn new() -> Self {
        let (now, caller) = (now(), caller());
        Attributes {
            links: AtomicU32::new(0),
            is_nameless: AtomicBool::new(false),
            user: AtomicU32::new(caller.user.of_files),
            group: AtomicU32::new(caller.group.of_files),
            accessed: AtomicU64::new(now),
            modified: AtomicU64::new(now),
            changed: AtomicU64::new(now),
        }
    }

    /// Records a change of the attributes.
    pub fn change(&self) {
        self.changed.store(now(), Ordering::Relaxed);
    }

    /// Records a change of the content.
    pub fn modify(&self) {
        let now = now();
        self.modified.store(now, Ordering::Relaxed);
        self.changed.store(now, Ordering::Relaxed);
    }
}

/// The time, in nanoseconds since 1970.
pub fn now() -> u64 {
    metal::start_of_time() + Metal::now()
}
