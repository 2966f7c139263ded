//! One sentence that names what holds the tasks up.

use crate::{Kind, Lock, Stacks};
use std::collections::BTreeMap;

/// What takes less than this part of the tasks' time holds nobody up.
const MATTERS: f64 = 0.1;
/// The name of locks that are only known by who takes them.
pub const UNKNOWN: &str = "unknown lock";

/// The sentence, for tasks that had `task_seconds` together.
pub fn bottleneck(locks: &[Lock], busy: &Stacks, waits: &Stacks, task_seconds: f64) -> String {
    let worst = by_name(locks)
        .into_iter()
        .max_by(|a, b| a.share.total_cmp(&b.share));
    match worst.filter(|lock| lock.share >= MATTERS) {
        Some(lock) => lock.sentence(),
        None => without_a_lock(busy, waits, task_seconds),
    }
}

/// A lock with all its callers.
struct Whole<'a> {
    share: f64,
    /// The caller that waited longest.
    main: &'a Lock,
    callers: usize,
}

impl Whole<'_> {
    fn sentence(&self) -> String {
        let Lock {
            name, kind, caller, ..
        } = self.main;
        let share = percent(self.share);
        let others = match self.callers {
            1 => String::new(),
            _ => format!(" ({} of it there)", percent(self.main.share / self.share)),
        };
        match kind {
            Kind::Line => format!("{share} of task time goes at the cache line of {name}"),
            _ => format!(
                "{share} of task time waits for {name}, taken{} in {caller}{others}",
                kind.purpose()
            ),
        }
    }
}

/// Adds callers up; a lock without a name is one for each caller.
fn by_name(locks: &[Lock]) -> Vec<Whole<'_>> {
    let mut sums: BTreeMap<(&str, &str), Whole<'_>> = BTreeMap::new();
    for lock in locks {
        let who = if lock.name == UNKNOWN {
            &lock.caller
        } else {
            ""
        };
        let sum = sums.entry((&lock.name, who)).or_insert(Whole {
            share: 0.0,
            main: lock,
            callers: 0,
        });
        sum.share += lock.share;
        sum.callers += 1;
        if lock.share > sum.main.share {
            sum.main = lock;
        }
    }
    sums.into_values().collect()
}

fn without_a_lock(busy: &Stacks, waits: &Stacks, task_seconds: f64) -> String {
    let (working, waiting) = (busy.total() / task_seconds, waits.total() / task_seconds);
    let most = |stacks: &Stacks| {
        let leaf = stacks.leaves().into_iter().next();
        leaf.map_or(String::new(), |(name, seconds)| {
            format!(", {} in {name}", percent(seconds / task_seconds))
        })
    };
    match waiting > working {
        true => format!(
            "no lock; {} of task time is blocked{}",
            percent(waiting),
            most(waits)
        ),
        false => format!(
            "no lock; {} of task time is work{}",
            percent(working),
            most(busy)
        ),
    }
}

fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(name: &str, kind: Kind, caller: &str, wait: f64, spin: f64) -> Lock {
        let mut lock = Lock::new(name, kind, caller);
        lock.add_waits(10, wait, wait);
        lock.spin = spin;
        lock.share_of(10.0)
    }

    #[test]
    fn the_lock_is_named_with_its_main_caller() {
        let locks = [
            lock("mmap_lock", Kind::RwsemWrite, "vm_mmap_pgoff", 2.0, 1.0),
            lock("mmap_lock", Kind::RwsemWrite, "__vm_munmap", 1.0, 4.0),
            lock("unknown lock", Kind::Spinlock, "a", 4.0, 0.0),
            lock("unknown lock", Kind::Spinlock, "b", 4.5, 0.0),
        ];
        let none = Stacks::default();
        assert_eq!(
            bottleneck(&locks, &none, &none, 10.0),
            "80 % of task time waits for mmap_lock, taken for writing in __vm_munmap (62 % of it there)"
        );
        assert_eq!(
            bottleneck(&locks[2..], &none, &none, 10.0),
            "45 % of task time waits for unknown lock, taken in b"
        );
    }

    #[test]
    fn without_a_lock_the_work_is_named() {
        let mut busy = Stacks::default();
        busy.add(["mmap1", "main", "clear_page_erms_[k]"], 7.0);
        busy.add(["mmap1", "main"], 1.0);
        let mut waits = Stacks::default();
        let few = [lock("x", Kind::Mutex, "y", 0.5, 0.0)];
        assert_eq!(
            bottleneck(&few, &busy, &waits, 10.0),
            "no lock; 80 % of task time is work, 70 % in clear_page_erms"
        );
        waits.add(["pipe1", "pipe_read_[k]"], 9.0);
        assert_eq!(
            bottleneck(&[], &busy, &waits, 10.0),
            "no lock; 90 % of task time is blocked, 90 % in pipe_read"
        );
    }
}
