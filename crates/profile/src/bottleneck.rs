//! One sentence that names the bottleneck of a run.

use crate::{By, Holder, IDLE, Kind, Lock, PREEMPTED, Part, Profile, Stacks};
use stats::{duration, printable, shortened};
use std::collections::BTreeMap;

/// The least share of active time (less the time spent waiting for a CPU) at which a lock counts as
/// the bottleneck.
const MATTERS: f64 = 0.1;
/// Nothing is named that took a smaller share of task time, however little the tasks did.
const LEAST: f64 = 0.001;
/// The least share of task time that must have been seen to ignore what was not seen.
const SEEN: f64 = 0.5;
/// The least part of the waiting for a lock that a holder named in the sentence has caused.
const DOMINATES: f64 = 0.5;
/// Letters of a name in the sentence at most.
const LONGEST: usize = 100;
/// The name of locks that are known by their callers only.
pub const UNKNOWN: &str = "unknown lock";

/// The sentence. Where something is hidden, that may be the bottleneck, unless a lock that was seen
/// is.
pub(crate) fn bottleneck(profile: &Profile) -> String {
    let all = profile.task_seconds();
    if all.is_nan() || all <= 0.0 {
        return "not known: no task was seen".to_owned();
    }
    if let Some(doubt) = &profile.doubt {
        return format!("not known: {doubt}");
    }
    let time = Time::of(profile, all);
    let held_up = held_up(profile, &time);
    let queued = time.queued.total() / time.active;
    let sentence = match queued {
        most if most > held_up.share => {
            let (queued, of) = (percent(queued), time.unit());
            format!("{queued} of {of} waits for a CPU; {}", held_up.sentence)
        }
        some if some >= MATTERS => {
            format!("{}; {} waits for a CPU", held_up.sentence, percent(some))
        }
        _ => held_up.sentence,
    };
    let unseen = unseen(profile, &time).filter(|_| !sentence.starts_with("not known"));
    let sentence = sentence + &unseen.unwrap_or_default();
    if time.is_all_active() || time.is_idle() {
        return sentence;
    }
    let idle = time.idle.total() / all;
    format!("{sentence}; {} of task time is idle", percent(idle))
}

/// Says how much of the time to which shares refer was not seen. Shares are not extrapolated to it:
/// records are lost where a CPU is busiest, and what they would have shown may be unlike the rest.
fn unseen(profile: &Profile, time: &Time<'_>) -> Option<String> {
    let share = profile.spent?.unseen / time.active;
    let (share, of) = (Some(share).filter(|&share| share >= MATTERS)?, time.unit());
    Some(format!("; {} of {of} is not seen", percent(share)))
}

/// How the tasks spent their time.
struct Time<'a> {
    all: f64,
    /// All but idle time; never 0.
    active: f64,
    busy: &'a Stacks,
    queued: Stacks,
    blocked: Stacks,
    idle: Stacks,
}

impl Time<'_> {
    fn of(profile: &Profile, all: f64) -> Time<'_> {
        let (queued, others) = profile.waits.split(PREEMPTED);
        let (idle, blocked) = others.split(IDLE);
        Time {
            all,
            active: (all - idle.total()).max(LEAST * all),
            busy: &profile.busy,
            queued,
            blocked,
            idle,
        }
    }

    /// Returns true if so little time was idle that it need not be mentioned.
    fn is_all_active(&self) -> bool {
        self.idle.total() < MATTERS * self.all
    }

    /// Returns true if no task did anything.
    fn is_idle(&self) -> bool {
        let done = self.busy.total() + self.queued.total() + self.blocked.total();
        !self.idle.is_empty() && done < LEAST * self.all
    }

    /// The time to which shares refer.
    fn unit(&self) -> &'static str {
        if self.is_all_active() {
            "task time"
        } else {
            "active time"
        }
    }

    fn seen(&self) -> f64 {
        let off = [&self.queued, &self.blocked, &self.idle];
        let off: f64 = off.into_iter().map(Stacks::total).sum();
        (self.busy.total() + off) / self.all
    }
}

/// What held the tasks up, and its share of active time.
struct HeldUp {
    sentence: String,
    share: f64,
}

fn held_up(profile: &Profile, time: &Time<'_>) -> HeldUp {
    let worst = by_name(&profile.locks)
        .into_iter()
        .max_by(|a, b| a.share.total_cmp(&b.share));
    // A task that is denied a CPU meets no lock; on a crowded machine a lock may still hold up
    // those that run.
    let running = 1.0 - time.queued.total() / time.active;
    let least = (MATTERS * running.max(MATTERS)).max(LEAST * time.all / time.active);
    let (busy, blocked) = (time.busy.total(), time.blocked.total());
    let said = |sentence: String, share: f64| HeldUp { sentence, share };
    match worst.filter(|lock| lock.share >= least) {
        Some(lock) => {
            let sentence = lock.sentence(time.unit()) + &held(lock.main, &profile.holders);
            said(sentence, lock.share)
        }
        None if let Some(words) = profile.hidden.words() => said(unknown(time, words), 1.0),
        None if time.seen() < SEEN => {
            let part = percent(time.seen());
            said(format!("not known: only {part} of task time was seen"), 1.0)
        }
        None if time.is_idle() => {
            let (idle, most) = (
                percent(time.idle.total() / time.all),
                most(&time.idle, time.all),
            );
            said(
                format!("no thread ran; {idle} of task time is idle{most}"),
                1.0,
            )
        }
        None if blocked > busy => {
            let (share, most) = (blocked / time.active, most(&time.blocked, time.active));
            let (of, percent) = (time.unit(), percent(share));
            said(
                format!("no lock; {percent} of {of} is blocked{most}"),
                share,
            )
        }
        None => said(work(profile, time), busy / time.active),
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
    fn sentence(&self, unit: &str) -> String {
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
            Kind::Line => format!("{share} of {unit} goes at the cache line of {name}"),
            _ => format!(
                "{share} of {unit} waits for {name}, taken{} in {caller}{others}",
                kind.purpose()
            ),
        }
    }
}

/// The function of a process that most of the waiting for `lock` is due to, in whichever of its
/// threads; empty if there is none.
fn held(lock: &Lock, holders: &[Holder]) -> String {
    let mut functions: BTreeMap<(&str, &str, bool), Vec<&Holder>> = BTreeMap::new();
    for holder in holders.iter().filter(|holder| holder.lock == lock.name) {
        let key = (&*holder.function, &*holder.process, holder.watched);
        functions.entry(key).or_default().push(holder);
    }
    let share = |rows: &[&Holder]| rows.iter().map(|row| row.share).sum::<f64>();
    let most = functions
        .into_values()
        .max_by(|a, b| share(a).total_cmp(&share(b)))
        .filter(|rows| share(rows) >= DOMINATES);
    let Some(rows) = most else {
        return String::new();
    };
    let first = rows[0];
    let place = match rows.len() {
        1 => first.place(),
        _ => first.process.clone(),
    };
    let (function, process) = (shown(&first.function), shown(&place));
    let foreign = if first.watched { "" } else { ", not watched" };
    let times: Option<f64> = rows.iter().map(|row| Some(row.times?.total)).sum();
    let for_long = match times {
        Some(total) => {
            let holds: u64 = rows.iter().map(|row| row.holds).sum();
            format!("for {} at a time", duration(total / holds.max(1) as f64))
        }
        None => "meanwhile".to_owned(),
    };
    format!("; {function} (process {process}{foreign}) holds it {for_long}")
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

fn unknown(time: &Time<'_>, hidden: &str) -> String {
    let share = percent(time.busy.total() / time.all);
    let most = most(time.busy, time.all);
    format!("not known: {hidden} cannot be seen here; {share} of task time is visible work{most}")
}

/// The work, and the calls that took the most of it.
fn work(profile: &Profile, time: &Time<'_>) -> String {
    /// As many are named.
    const CALLS: usize = 2;
    let all = time.busy.total();
    let (share, of) = (percent(all / time.active), time.unit());
    let part = |call: &&Part| call.busy / all;
    let calls = profile.parts.get(&By::Call).into_iter().flatten();
    let mut calls: Vec<&Part> = calls.filter(|call| part(call) >= MATTERS).collect();
    calls.sort_by(|a, b| b.busy.total_cmp(&a.busy));
    calls.truncate(CALLS);
    let named = calls.iter().map(|call| {
        let (part, name) = (percent(part(call)), shown(&call.name));
        format!("{part} of it in {name}")
    });
    let named: Vec<String> = named.collect();
    let named = match named.is_empty() {
        true => most(time.busy, time.active),
        false => format!(", {}", named.join(", ")),
    };
    format!("no lock; {share} of {of} is work{named}")
}

/// The function that itself took the most time of `all` seconds, ignoring those below which every
/// blocked task sleeps.
fn most(stacks: &Stacks, all: f64) -> String {
    const THROUGH: [&str; 2] = ["schedule", "__schedule"];
    let leaf = stacks.leaves(&THROUGH).into_iter().next();
    leaf.map_or(String::new(), |(name, seconds)| {
        let name = shown(name);
        format!(", {} in {name}", percent(seconds / all))
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

    use crate::{Hidden, Times};
    use stats::record::{Mode, Subject};

    const SEEN_ALL: Hidden = Hidden {
        kernel: false,
        waits: false,
    };

    fn bottleneck(
        locks: &[Lock],
        holders: &[Holder],
        busy: &Stacks,
        waits: &Stacks,
        hidden: Hidden,
        lived: f64,
    ) -> String {
        super::bottleneck(&Profile {
            hidden,
            busy: busy.clone(),
            waits: waits.clone(),
            locks: locks.to_vec(),
            holders: holders.to_vec(),
            ..Profile::new(Subject::new("w", "os", 1, Mode::Threads), lived, "")
        })
    }

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
            thread: None,
            queued: None,
            times: Some(Times {
                total: 0.66,
                mean: 0.0066,
                p99: 0.01,
                worst: 0.02,
            }),
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
        let most = Holder {
            share: 0.7,
            ..fork.clone()
        };
        assert_eq!(
            of(std::slice::from_ref(&most)),
            format!("{waits}; dup_mmap (process p) holds it for 6.60 ms at a time")
        );
        let woke = Holder {
            thread: Some("pool".to_owned()),
            times: None,
            ..most
        };
        assert_eq!(
            of(&[woke]),
            format!("{waits}; dup_mmap (process p/pool) holds it meanwhile")
        );
        // Three threads with names of their own are one process.
        let tasks = ["task 0", "task 1", "task 2"].map(|thread| Holder {
            thread: Some(thread.to_owned()),
            share: 0.25,
            ..fork.clone()
        });
        assert_eq!(
            of(&tasks),
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
        let locks = [lock("queue", Kind::Mutex, "work", 0.2, 0.0).share_of(0.4)];
        let (mut busy, mut waits) = (Stacks::default(), Stacks::default());
        busy.add(["server", "work"], 0.2);
        waits.add(["server", "work", "futex_do_wait_[k]"], 0.2);
        waits.add([IDLE, "server", "futex_do_wait_[k]"], 9.6);
        let idle = "96 % of task time is idle";
        assert_eq!(
            bottleneck(&locks, &[], &busy, &waits, SEEN_ALL, 10.0),
            format!("50 % of active time waits for queue, taken in work; {idle}")
        );
        assert_eq!(
            bottleneck(&[], &[], &busy, &waits, SEEN_ALL, 10.0),
            format!("no lock; 50 % of active time is work, 50 % in work; {idle}")
        );
    }

    #[test]
    fn a_program_that_sleeps_is_not_said_to_work() {
        let (busy, mut waits) = (Stacks::default(), Stacks::default());
        waits.add([IDLE, "server", "ep_poll_[k]"], 7.5);
        waits.add([IDLE, "server", "futex_do_wait_[k]"], 2.5);
        assert_eq!(
            bottleneck(&[], &[], &busy, &waits, SEEN_ALL, 10.0),
            "no thread ran; 100 % of task time is idle, 75 % in ep_poll"
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
