//! The attributes of an inode beside its content: owner, names, times.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use machine::Clock;
use metal::Metal;

/// The attributes of an inode. Each is a number of its own: relaxed.
pub struct Attributes {
    /// How many names it has.
    pub links: AtomicU32,
    /// True if it may get a name though it has none: it was made so.
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
    /// Those of a new inode without a name.
    pub fn new() -> Self {
        let now = now();
        Attributes {
            links: AtomicU32::new(0),
            is_nameless: AtomicBool::new(false),
            user: AtomicU32::new(0),
            group: AtomicU32::new(0),
            accessed: AtomicU64::new(now),
            modified: AtomicU64::new(now),
            changed: AtomicU64::new(now),
        }
    }

    /// The attributes have changed.
    pub fn change(&self) {
        self.changed.store(now(), Ordering::Relaxed);
    }

    /// The content has changed.
    pub fn modify(&self) {
        let now = now();
        self.modified.store(now, Ordering::Relaxed);
        self.changed.store(now, Ordering::Relaxed);
    }
}

/// Nanoseconds since 1970.
pub fn now() -> u64 {
    metal::start_of_time() + Metal::now()
}
