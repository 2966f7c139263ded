//! One sentence that names the bottleneck of a run.

use crate::{ASLEEP, Hidden, Holder, Kind, Lock, PREEMPTED, Stacks};
use stats::{duration, printable, shortened};
use std::collections::BTreeMap;

/// The least share of task time (less the time spent waiting for a CPU, and that of threads that
/// slept throughout) at which a lock counts as the bottleneck.
const MATTERS: f64 = 0.1;
/// No lock with a smaller share is named, however little the threads did.
const LEAST: f64 = 0.001;
/// The least share of task time that must have been seen to ignore what was not seen.
const SEEN: f64 = 0.5;
/// The least part of the waiting for a lock that a holder named in the sentence has caused.
const DOMINATES: f64 = 0.5;
/// Letters of a name in the sentence at most.
const LONGEST: usize = 100;
/// The name of locks that are known by their callers only.
pub const UNKNOWN: &str = "unknown lock";

/// The sentence, for tasks that had `task_seconds` together. Where something is hidden, that may be
/// the bottleneck, unless a lock that was seen is.
pub fn bottleneck(
    locks: &[Lock],
    holders: &[Holder],
    busy: &Stacks,
    waits: &Stacks,
    hidden: Hidden,
    task_seconds: f64,
) -> String {
    if task_seconds.is_nan() || task_seconds <= 0.0 {
        return "not known: no task was seen".to_owned();
    }
    let (preempted, others) = waits.split(PREEMPTED);
    let (asleep, blocked) = others.split(ASLEEP);
    let part = |stacks: &Stacks| stacks.total() / task_seconds;
    let (busy_part, blocked_part) = (part(busy), part(&blocked));
    let (preempted_part, asleep_part) = (part(&preempted), part(&asleep));
    let seen_part = busy_part + blocked_part + preempted_part + asleep_part;
    let worst = by_name(locks)
        .into_iter()
        .max_by(|a, b| a.share.total_cmp(&b.share));
    // A task that is denied a CPU meets no lock; on a crowded machine a lock may still hold up
    // those that run. Idle threads, however many there are, do not lessen what a lock costs others.
    let awake = 1.0 - asleep_part;
    let matters = LEAST.max(MATTERS * (awake - preempted_part).max(MATTERS * awake));
    let (held_up, part) = match worst.filter(|lock| lock.share >= matters) {
        Some(lock) => (lock.sentence() + &held(lock.main, holders), lock.share),
        None if let Some(words) = hidden.words() => (unknown(busy, words, task_seconds), 1.0),
        None if seen_part < SEEN => {
            let part = percent(seen_part);
            (format!("not known: only {part} of task time was seen"), 1.0)
        }
        None if seen_part <= asleep_part => return idle("no thread ran", &asleep, task_seconds),
        None if blocked_part > busy_part => (idle("no lock", &blocked, task_seconds), blocked_part),
        None => (work(busy, task_seconds), busy_part),
    };
    let sentence = match preempted_part {
        most if most > part => format!("{} of task time waits for a CPU; {held_up}", percent(most)),
        some if some >= MATTERS => format!("{held_up}; {} waits for a CPU", percent(some)),
        _ => held_up,
    };
    match asleep_part {
        some if some >= MATTERS => {
            let all = percent(some);
            format!("{sentence}; threads that slept throughout had {all} of task time")
        }
        _ => sentence,
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
        let (name, caller) = (shown(name), shown(caller));
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

/// The holder that most of the waiting for `lock` is due to; empty if there is none.
fn held(lock: &Lock, holders: &[Holder]) -> String {
    let of_lock = holders.iter().filter(|holder| holder.lock == lock.name);
    let most = of_lock.max_by(|a, b| a.share.total_cmp(&b.share));
    most.filter(|most| most.share >= DOMINATES)
        .map_or(String::new(), |most| {
            let (function, process) = (shown(&most.function), shown(&most.process));
            let foreign = if most.watched { "" } else { ", not watched" };
            let mean = duration(most.mean);
            format!("; {function} (process {process}{foreign}) holds it for {mean} at a time")
        })
}

/// Sums up each lock's callers; a lock without a name counts once for each caller.
fn by_name(locks: &[Lock]) -> Vec<Whole<'_>> {
    let mut sums: BTreeMap<(&str, &str), Whole<'_>> = BTreeMap::new();
    for lock in locks {
        let caller = if lock.name == UNKNOWN {
            &lock.caller
        } else {
            ""
        };
        let sum = sums.entry((&lock.name, caller)).or_insert(Whole {
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

fn unknown(busy: &Stacks, hidden: &str, task_seconds: f64) -> String {
    let share = percent(busy.total() / task_seconds);
    let most = most(busy, &[], task_seconds);
    format!("not known: {hidden} cannot be seen here; {share} of task time is visible work{most}")
}

fn work(busy: &Stacks, task_seconds: f64) -> String {
    let share = percent(busy.total() / task_seconds);
    let most = most(busy, &[], task_seconds);
    format!("no lock; {share} of task time is work{most}")
}

fn idle(what: &str, blocked: &Stacks, task_seconds: f64) -> String {
    /// The functions below which every blocked task sleeps.
    const THROUGH: [&str; 2] = ["schedule", "__schedule"];
    let share = percent(blocked.total() / task_seconds);
    let most = most(blocked, &THROUGH, task_seconds);
    format!("{what}; {share} of task time is blocked{most}")
}

/// The function that itself took the most time, ignoring frames that begin with `through`.
fn most(stacks: &Stacks, through: &[&str], task_seconds: f64) -> String {
    let leaf = stacks.leaves(through).into_iter().next();
    leaf.map_or(String::new(), |(name, seconds)| {
        let name = shown(name);
        format!(", {} in {name}", percent(seconds / task_seconds))
    })
}

/// A name as the sentence has it.
fn shown(name: &str) -> String {
    shortened(&printable(name), LONGEST).into_owned()
}

fn percent(part: f64) -> String {
    format!("{:.0} %", 100.0 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN_ALL: Hidden = Hidden {
        kernel: false,
        waits: false,
    };

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
            bottleneck(&locks, &[], &none, &none, SEEN_ALL, 10.0),
            "80 % of task time waits for mmap_lock, taken for writing in __vm_munmap (62 % of it \
             there)"
        );
        assert_eq!(
            bottleneck(&locks[2..], &[], &none, &none, SEEN_ALL, 10.0),
            "45 % of task time waits for unknown lock, taken in b"
        );
    }

    #[test]
    fn a_holder_that_most_wait_for_is_named() {
        let locks = [
            lock("mmap_lock", Kind::RwsemWrite, "__vm_munmap", 3.0, 1.1),
            lock("other", Kind::RwsemWrite, "f", 0.5, 0.0),
        ];
        let holder = |lock: &str, process: &str, function: &str, share: f64| Holder {
            lock: lock.to_owned(),
            process: process.to_owned(),
            watched: process == "p",
            function: function.to_owned(),
            kind: Kind::RwsemRead,
            holds: 100,
            total: 0.66,
            mean: 0.0066,
            p99: 0.01,
            worst: 0.02,
            waited: share,
            share,
        };
        let none = Stacks::default();
        let of = |holders: &[Holder]| bottleneck(&locks, holders, &none, &none, SEEN_ALL, 10.0);
        let waits = "41 % of task time waits for mmap_lock, taken for writing in __vm_munmap";
        let other = holder("other", "p", "f", 0.9);
        let agent = holder("mmap_lock", "agent", "show_smap", 0.6);
        let fork = holder("mmap_lock", "p", "dup_mmap", 0.3);
        assert_eq!(
            of(&[other, fork.clone(), agent]),
            format!(
                "{waits}; show_smap (process agent, not watched) holds it for 6.60 ms at a time"
            )
        );
        assert_eq!(of(std::slice::from_ref(&fork)), waits);
        let most = Holder { share: 0.7, ..fork };
        assert_eq!(
            of(&[most]),
            format!("{waits}; dup_mmap (process p) holds it for 6.60 ms at a time")
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
            bottleneck(&few, &[], &busy, &waits, SEEN_ALL, 10.0),
            "no lock; 80 % of task time is work, 70 % in clear_page_erms"
        );
        waits.add(
            ["pipe1", "pipe_read_[k]", "schedule_[k]", "__schedule_[k]"],
            9.0,
        );
        assert_eq!(
            bottleneck(&[], &[], &busy, &waits, SEEN_ALL, 10.0),
            "no lock; 90 % of task time is blocked, 90 % in pipe_read"
        );
    }

    #[test]
    fn what_is_not_seen_is_not_said_to_be_nothing() {
        let (mut busy, none) = (Stacks::default(), Stacks::default());
        busy.add(["mmap1", "main", "munmap"], 0.1);
        let hidden = Hidden {
            kernel: true,
            waits: true,
        };
        let sentence = bottleneck(&[], &[], &busy, &none, hidden, 10.0);
        assert!(
            sentence.starts_with("not known: the kernel and waits cannot be seen here; "),
            "{sentence}"
        );
        assert!(!sentence.contains("no lock"), "{sentence}");
        // A lock that was seen is named all the same.
        let locks = [lock("swap", Kind::Own, "vm/src/swap.rs:1", 5.0, 0.0)];
        let sentence = bottleneck(&locks, &[], &busy, &none, hidden, 10.0);
        assert!(
            sentence.starts_with("50 % of task time waits for swap"),
            "{sentence}"
        );
    }

    #[test]
    fn little_that_was_seen_is_no_verdict() {
        let (mut busy, none) = (Stacks::default(), Stacks::default());
        assert_eq!(
            bottleneck(&[], &[], &none, &none, SEEN_ALL, 10.0),
            "not known: only 0 % of task time was seen"
        );
        busy.add(["mmap1", "main"], 3.0);
        assert_eq!(
            bottleneck(&[], &[], &busy, &none, SEEN_ALL, 10.0),
            "not known: only 30 % of task time was seen"
        );
        for lived in [0.0, f64::NAN] {
            assert_eq!(
                bottleneck(&[], &[], &busy, &none, SEEN_ALL, lived),
                "not known: no task was seen"
            );
        }
    }

    #[test]
    fn long_names_and_controls_do_not_reach_the_sentence() {
        let (mut busy, none) = (Stacks::default(), Stacks::default());
        let long = "L".repeat(3000);
        busy.add(["mmap1", &long], 9.0);
        let sentence = bottleneck(&[], &[], &busy, &none, SEEN_ALL, 10.0);
        assert!(sentence.len() < 200 && sentence.contains('…'), "{sentence}");
        let locks = [lock("a\x1b[31m", Kind::Mutex, &long, 9.0, 0.0)];
        let sentence = bottleneck(&locks, &[], &busy, &none, SEEN_ALL, 10.0);
        assert!(
            sentence.len() < 250 && sentence.contains("a\\u001b[31m, taken in LLL"),
            "{sentence}"
        );
    }

    #[test]
    fn idle_threads_hide_no_lock() {
        let locks = [lock("queue", Kind::Mutex, "work", 0.2, 0.0)];
        let (mut busy, mut waits) = (Stacks::default(), Stacks::default());
        busy.add(["server", "work"], 0.2);
        waits.add(["server", "work", "futex_do_wait_[k]"], 0.2);
        waits.add([ASLEEP, "server", "futex_do_wait_[k]"], 9.6);
        let idle = "threads that slept throughout had 96 % of task time";
        assert_eq!(
            bottleneck(&locks, &[], &busy, &waits, SEEN_ALL, 10.0),
            format!("2 % of task time waits for queue, taken in work; {idle}")
        );
        assert_eq!(
            bottleneck(&[], &[], &busy, &waits, SEEN_ALL, 10.0),
            format!("no lock; 2 % of task time is work, 2 % in work; {idle}")
        );
    }

    #[test]
    fn a_program_that_sleeps_is_not_said_to_work() {
        let (busy, mut waits) = (Stacks::default(), Stacks::default());
        waits.add([ASLEEP, "server", "ep_poll_[k]"], 7.5);
        waits.add([ASLEEP, "server", "futex_do_wait_[k]"], 2.5);
        assert_eq!(
            bottleneck(&[], &[], &busy, &waits, SEEN_ALL, 10.0),
            "no thread ran; 100 % of task time is blocked, 75 % in ep_poll"
        );
    }

    #[test]
    fn a_crowded_machine_hides_no_lock() {
        let locks = [lock("mmap_lock", Kind::RwsemWrite, "__vm_munmap", 0.4, 0.1)];
        let (busy, mut waits) = (Stacks::default(), Stacks::default());
        waits.add([PREEMPTED, "mmap1", "schedule_[k]"], 9.0);
        waits.add(["mmap1", "down_write_[k]", "schedule_[k]"], 0.4);
        assert_eq!(
            bottleneck(&locks, &[], &busy, &waits, SEEN_ALL, 10.0),
            "90 % of task time waits for a CPU; \
             5 % of task time waits for mmap_lock, taken for writing in __vm_munmap"
        );
        let few = Stacks::default();
        assert_eq!(
            bottleneck(&[], &[], &few, &waits, SEEN_ALL, 10.0),
            "90 % of task time waits for a CPU; \
             no lock; 4 % of task time is blocked, 4 % in down_write"
        );
    }
}
