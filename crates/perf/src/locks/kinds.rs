//! Kinds of locks, from the flags of `contention_begin`.

use profile::Kind;

const SPIN: u32 = 1;
const READ: u32 = 2;
const WRITE: u32 = 4;
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
