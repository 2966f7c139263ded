//! Kinds of locks, from the flags of `contention_begin` and from the functions that wait.

use super::matches;
use profile::Kind;

const SPIN: u32 = 1;
const READ: u32 = 2;
const WRITE: u32 = 4;
/// A real-time kernel makes other locks from its mutex; the flags do not tell which.
const REAL_TIME: u32 = 8;
const PERCPU: u32 = 16;
const MUTEX: u32 = 32;

/// The kind of lock. A kernel with real-time locks adds a flag for the lock's implementation, which
/// is not part of the kind.
pub(crate) fn kind(flags: u32) -> Kind {
    let has = |flag| flags & flag != 0;
    if has(MUTEX) {
        return Kind::Mutex;
    }
    if has(PERCPU) {
        return Kind::PercpuRwsem;
    }
    match (has(SPIN), has(READ), has(WRITE)) {
        (true, true, _) => Kind::RwlockRead,
        (true, _, true) => Kind::RwlockWrite,
        (true, ..) => Kind::Spinlock,
        (_, true, _) => Kind::RwsemRead,
        (_, _, true) => Kind::RwsemWrite,
        // A counting semaphore or a real-time mutex, which tasks wait for as for a mutex.
        _ => Kind::Mutex,
    }
}

/// The kind of lock, by the flags and by the kernel frames of its waiter, from the leaf.
pub(crate) fn exactly(flags: u32, frames: &[String]) -> Kind {
    let told = match flags & REAL_TIME {
        0 => None,
        _ => sleeping(frames),
    };
    told.unwrap_or_else(|| kind(flags))
}

/// The kind of the sleeping lock that a thread waits for, by the nearest function that tells; none
/// if it does not wait for one.
pub(crate) fn sleeping(frames: &[String]) -> Option<Kind> {
    const SAYS: &[(&str, Kind)] = &[
        ("rwsem_down_write*", Kind::RwsemWrite),
        ("down_write*", Kind::RwsemWrite),
        ("rwsem_down_read*", Kind::RwsemRead),
        ("down_read*", Kind::RwsemRead),
        ("percpu_rwsem_wait*", Kind::PercpuRwsem),
        ("percpu_down_write*", Kind::PercpuRwsem),
        ("__percpu_down_read*", Kind::PercpuRwsem),
        ("rt_spin_lock*", Kind::Spinlock),
        ("rt_read_lock*", Kind::RwlockRead),
        ("rt_write_lock*", Kind::RwlockWrite),
        ("mutex_*", Kind::Mutex),
        ("__mutex*", Kind::Mutex),
        ("ww_mutex*", Kind::Mutex),
        ("__ww_mutex*", Kind::Mutex),
        ("rt_mutex_*", Kind::Mutex),
        ("__down*", Kind::Mutex),
    ];
    frames.iter().find_map(|frame| {
        let says = SAYS.iter().find(|(pattern, _)| matches(pattern, frame));
        says.map(|&(_, kind)| kind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_make_kinds() {
        let expected = [
            (SPIN, Kind::Spinlock),
            (SPIN | READ, Kind::RwlockRead),
            (SPIN | WRITE, Kind::RwlockWrite),
            (READ, Kind::RwsemRead),
            (WRITE, Kind::RwsemWrite),
            (MUTEX, Kind::Mutex),
            (MUTEX | SPIN, Kind::Mutex),
            (PERCPU | READ, Kind::PercpuRwsem),
            (PERCPU | WRITE, Kind::PercpuRwsem),
            (8, Kind::Mutex),
        ];
        for (flags, expected) in expected {
            assert_eq!(kind(flags), expected, "flags {flags}");
        }
    }
}
