//! Accounts of hand-made events.

use super::*;
use crate::tasks::{Image, Process};
use perf_event_open_sys::bindings::{PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER};

const SPIN: u32 = 1;
const READ: u32 = 2;
const WRITE: u32 = 4;
const MUTEX: u32 = 32;
const LOCK: u64 = 0xa;
const OTHER: u64 = 0xb;

/// An account of a process 10 with threads 11 and 12.
fn account() -> Account {
    let mut family = Family::default();
    family.add(
        10,
        Process {
            name: "p".into(),
            image: Image::new(),
        },
        &[11, 12],
    );
    Account::new(family, Files::default(), 0)
}

fn numbered(tid: u32) -> Thread {
    Thread { pid: 10, tid }
}

/// A kernel stack of one frame.
fn chain(frame: u64) -> Chain {
    [PERF_CONTEXT_KERNEL, frame].into()
}

fn sample(tid: u32, frame: u64) -> Event {
    Event::Sample {
        thread: numbered(tid),
        cpu: 0,
        chain: chain(frame),
    }
}

fn begin(tid: u32, lock: u64, flags: u32, frame: u64) -> Event {
    Event::Begin {
        thread: numbered(tid),
        lock,
        flags,
        chain: chain(frame),
    }
}

fn end(tid: u32, lock: u64) -> Event {
    Event::End {
        thread: numbered(tid),
        lock,
    }
}

/// The thread goes off its CPU.
fn off(tid: u32, state: i64, frame: u64) -> Event {
    Event::Leave {
        thread: numbered(tid),
        state,
        chain: chain(frame),
    }
}

/// The thread comes onto a CPU.
fn on(tid: u32) -> Event {
    Event::Resume {
        thread: numbered(tid),
    }
}

/// Takes an event; a thread that is about to go off its CPU does.
fn take(account: &mut Account, time: u64, event: Event) {
    let off = match event {
        Event::Leave { thread, state, .. } => Some(Event::Off {
            thread,
            preempted: !is_asleep(state),
        }),
        _ => None,
    };
    for event in [event].into_iter().chain(off) {
        account.take(Stamped { time, event });
    }
}

/// The totals after `events` at 0, 10, 20, …, closed at `until`.
fn totals<const N: usize>(events: [Event; N], until: u64) -> (Totals, Vec<Stack>) {
    let mut account = account();
    for (index, event) in events.into_iter().enumerate() {
        take(&mut account, 10 * index as u64, event);
    }
    account.close(until);
    (account.totals, account.stacks.all().to_vec())
}

/// Counts by the stack's one frame.
fn by_frame<V: Copy>(counts: &HashMap<StackId, V>, stacks: &[Stack]) -> Vec<(u64, V)> {
    let frame = |id: StackId| match stacks[id as usize].frames[0] {
        Frame::Kernel(address) => address,
        _ => 0,
    };
    let mut all: Vec<_> = counts
        .iter()
        .map(|(&id, &count)| (frame(id), count))
        .collect();
    all.sort_by_key(|&(frame, _)| frame);
    all
}

fn waits(totals: &Totals, stacks: &[Stack]) -> Vec<(u64, u32, Figures)> {
    let frame = |id: StackId| match stacks[id as usize].frames[0] {
        Frame::Kernel(address) => address,
        _ => 0,
    };
    let each = totals
        .waits
        .iter()
        .map(|(&(id, flags), tally)| (frame(id), flags, figures(tally)));
    let mut all: Vec<_> = each.collect();
    all.sort_by_key(|&(frame, ..)| frame);
    all
}

/// A tally's count, total and longest time.
type Figures = (u64, u64, u64);

fn figures(tally: &Tally) -> Figures {
    (tally.count, tally.total, tally.worst)
}

/// Figures by the stack's one frame.
fn tallies(all: &HashMap<StackId, Tally>, stacks: &[Stack]) -> Vec<(u64, Figures)> {
    let figures = all.iter().map(|(&id, tally)| (id, figures(tally)));
    by_frame(&figures.collect(), stacks)
}

#[test]
fn waits_are_paired_by_thread_and_lock() {
    let events = [
        begin(11, LOCK, WRITE, 1),
        begin(12, LOCK, READ, 2),
        end(12, LOCK),
        end(11, LOCK),
        begin(11, OTHER, WRITE, 1),
        end(11, OTHER),
    ];
    let (totals, stacks) = totals(events, 100);
    let expected = [(1, WRITE, (2, 40, 30)), (2, READ, (1, 10, 10))];
    assert_eq!(waits(&totals, &stacks), expected);
    assert_eq!(totals.unpaired, 0);
}

#[test]
fn a_sample_within_a_wait_is_no_spinning_besides() {
    let events = [
        sample(11, 7),
        begin(11, LOCK, SPIN, 1),
        sample(11, 7),
        sample(12, 8),
        end(11, LOCK),
        sample(11, 7),
    ];
    let (totals, stacks) = totals(events, 100);
    assert_eq!(by_frame(&totals.samples, &stacks), [(7, 3), (8, 1)]);
    assert_eq!(by_frame(&totals.loose, &stacks), [(7, 2), (8, 1)]);
}

#[test]
fn a_mutex_spun_for_and_slept_for_is_one_wait() {
    let events = [
        begin(11, LOCK, MUTEX | SPIN, 1),
        begin(11, LOCK, MUTEX, 2),
        end(11, LOCK),
    ];
    let (totals, stacks) = totals(events, 100);
    assert_eq!(waits(&totals, &stacks), [(1, MUTEX, (1, 20, 20))]);
    assert_eq!(totals.unpaired, 0);
}

#[test]
fn a_second_belongs_to_the_innermost_wait() {
    // The semaphore's own spin lock, and one that an interrupt takes.
    let events = [
        begin(11, LOCK, WRITE, 1),
        begin(11, OTHER, SPIN, 2),
        begin(11, 0xc, SPIN, 3),
        end(11, 0xc),
        end(11, OTHER),
        end(11, LOCK),
    ];
    let (totals, stacks) = totals(events, 100);
    let expected = [
        (1, WRITE, (1, 20, 20)),
        (2, SPIN, (1, 20, 20)),
        (3, SPIN, (1, 10, 10)),
    ];
    assert_eq!(waits(&totals, &stacks), expected);
}

#[test]
fn a_wait_without_an_end_gives_its_samples_back() {
    let events = [
        begin(11, LOCK, SPIN, 1),
        sample(11, 7),
        begin(11, LOCK, SPIN, 1),
        end(11, LOCK),
        end(11, OTHER),
    ];
    let (totals, stacks) = totals(events, 100);
    assert_eq!(waits(&totals, &stacks), [(1, SPIN, (1, 10, 10))]);
    assert_eq!(by_frame(&totals.loose, &stacks), [(7, 1)]);
    assert_eq!(totals.unpaired, 2, "a begin and an end");
}

#[test]
fn an_end_shows_that_those_within_were_lost() {
    let events = [
        begin(11, LOCK, WRITE, 1),
        begin(11, OTHER, SPIN, 2),
        sample(11, 7),
        end(11, LOCK),
    ];
    let (totals, stacks) = totals(events, 100);
    assert_eq!(waits(&totals, &stacks), [(1, WRITE, (1, 30, 30))]);
    assert_eq!(by_frame(&totals.loose, &stacks), [(7, 1)]);
    assert_eq!(totals.unpaired, 1);
}

#[test]
fn where_records_were_lost_no_wait_is_made_up() {
    let events = [
        begin(11, LOCK, WRITE, 1),
        sample(11, 7),
        Event::Lost(5),
        end(11, LOCK),
    ];
    let (totals, stacks) = totals(events, 100);
    assert_eq!(totals.lost, 5);
    assert!(totals.waits.is_empty());
    assert_eq!(by_frame(&totals.loose, &stacks), [(7, 1)]);
    assert_eq!(totals.unpaired, 2);
}

#[test]
fn a_wait_open_at_the_end_lasts_until_then() {
    let events = [begin(11, LOCK, WRITE, 1), off(11, 2, 2)];
    let (totals, stacks) = totals(events, 110);
    assert_eq!(waits(&totals, &stacks), [(1, WRITE, (1, 110, 110))]);
    assert_eq!(tallies(&totals.asleep, &stacks), [(2, (1, 100, 100))]);
    assert_eq!(by_frame(&totals.spun, &stacks), [(1, 10)]);
}

#[test]
fn time_off_cpu_ends_when_the_thread_comes_back() {
    let events = [off(11, 1, 1), off(12, 0, 2), on(11), on(12)];
    let (totals, stacks) = totals(events, 100);
    assert_eq!(tallies(&totals.asleep, &stacks), [(1, (1, 20, 20))]);
    assert_eq!(tallies(&totals.preempted, &stacks), [(2, (1, 20, 20))]);
}

#[test]
fn a_preempted_thread_says_so() {
    let events = [off(11, 0x100, 1), on(11)];
    let (totals, stacks) = totals(events, 100);
    assert!(totals.asleep.is_empty());
    assert_eq!(tallies(&totals.preempted, &stacks), [(1, (1, 10, 10))]);
}

#[test]
fn what_a_wait_slept_was_not_spent_on_a_cpu() {
    let events = [
        begin(11, LOCK, WRITE, 1),
        off(11, 2, 2),
        on(11),
        end(11, LOCK),
    ];
    let (totals, stacks) = totals(events, 100);
    assert_eq!(by_frame(&totals.spun, &stacks), [(1, 20)]);
    assert_eq!(tallies(&totals.asleep, &stacks), [(2, (1, 10, 10))]);
}

#[test]
fn a_return_that_was_not_reported_is_not_counted() {
    let exit = Event::Exit {
        thread: numbered(11),
    };
    let events = [
        off(11, 2, 1),
        off(11, 2, 2),
        on(11),
        off(11, 0x100, 4),
        exit,
    ];
    let (totals, stacks) = totals(events, 1000);
    assert_eq!(tallies(&totals.asleep, &stacks), [(2, (1, 10, 10))]);
    assert!(totals.preempted.is_empty());
    assert_eq!(totals.unpaired, 2);
}

#[test]
fn a_stranger_that_makes_a_watched_thread_wait_is_a_holder() {
    let own = std::process::id();
    let stranger = Thread { pid: own, tid: own };
    let space = LOCK - 4;
    let acquire = |thread, write, frame| Event::Acquire {
        thread,
        space,
        write,
        chain: chain(frame),
    };
    let seen = |on| {
        let events = [
            Event::Holds(on),
            acquire(stranger, false, 5),
            Event::Sample {
                thread: stranger,
                cpu: 0,
                chain: [PERF_CONTEXT_KERNEL, 6, PERF_CONTEXT_USER, 7].into(),
            },
            begin(11, LOCK, WRITE, 1),
            // A spin lock is none of these locks.
            begin(11, OTHER, SPIN, 1),
            end(11, OTHER),
            Event::Release {
                thread: stranger,
                space,
            },
            end(11, LOCK),
            acquire(numbered(11), true, 8),
        ];
        totals(events, 200)
    };
    let (totals, stacks) = seen(true);
    assert_eq!(totals.holds.len(), 1, "{totals:?}");
    let (&(stack, write, is_watched), held) = totals.holds.iter().next().expect("one");
    let kernel = |id: StackId| stacks[id as usize].frames.clone();
    assert!(!write && !is_watched);
    assert_eq!(kernel(stack), [Frame::Kernel(5)]);
    assert!(!stacks[stack as usize].name.is_empty());
    assert_eq!((figures(&held.times), held.waited), ((1, 50, 50), 30));
    let samples: Vec<_> = held.samples.keys().map(|&id| kernel(id)).collect();
    assert_eq!(samples, [[Frame::Kernel(6)]]);
    assert_eq!(totals.waited_for_holds, 40);
    assert_eq!(totals.recorded_holds, Some(200));
    let (totals, _) = seen(false);
    assert!(totals.holds.is_empty() && totals.recorded_holds.is_none());
}

#[test]
fn a_woken_thread_waits_for_a_cpu_until_it_runs() {
    let wake = |woken| Event::Wake {
        thread: numbered(12),
        woken,
        chain: chain(3),
    };
    let events = [
        // Asleep for a lock, then somewhere else.
        begin(11, LOCK, WRITE, 1),
        off(11, 2, 2),
        wake(11),
        // Only the first wake-up ends the sleep.
        wake(11),
        on(11),
        end(11, LOCK),
        off(11, 1, 4),
        wake(11),
    ];
    let (totals, stacks) = totals(events, 200);
    let frame = |id: StackId| stacks[id as usize].frames[0];
    let of = |place: u64| {
        let mut all = totals.woken.iter();
        let found = all.find(|((stack, ..), _)| frame(*stack) == Frame::Kernel(place));
        let ((_, cause, waker), woken) = found.expect("one");
        assert_eq!(frame(waker.stack), Frame::Kernel(3));
        (cause.clone(), figures(&woken.slept), figures(&woken.queued))
    };
    let (cause, slept, queued) = of(2);
    assert!(matches!(cause, Cause::Lock(stack, WRITE) if frame(stack) == Frame::Kernel(1)));
    assert_eq!((slept, queued), ((1, 30, 30), (1, 20, 20)));
    let (cause, slept, queued) = of(4);
    assert!(matches!(cause, Cause::Sleep(_, None)));
    assert_eq!((slept, queued), ((1, 140, 140), (1, 130, 130)));
}

#[test]
fn strangers_and_the_recorder_are_counted_apart() {
    let mut account = account();
    account.family.ignore(12);
    for (time, tid) in [12, 77, 77, 11].into_iter().enumerate() {
        account.take(Stamped {
            time: time as u64,
            event: sample(tid, 1),
        });
    }
    let totals = account.totals;
    assert_eq!(
        (totals.own, totals.foreign, totals.samples.values().sum()),
        (1, 2, 1_u64)
    );
}

#[test]
fn the_lives_of_threads_are_added_up() {
    let mut account = account();
    account.ignore(12);
    let fork = |child, parent| Event::Fork {
        child: Thread {
            pid: child,
            tid: child,
        },
        parent: numbered(parent),
    };
    let exit = |tid| Event::Exit {
        thread: Thread { pid: tid, tid },
    };
    // A child of an ignored thread counts like any other; a stranger does not.
    let stranger = Event::Fork {
        child: Thread { pid: 90, tid: 90 },
        parent: Thread { pid: 5, tid: 5 },
    };
    let events = [fork(20, 12), stranger, exit(20), fork(21, 11), exit(90)];
    for (index, event) in events.into_iter().enumerate() {
        let time = 10 * (index as u64 + 1);
        account.take(Stamped { time, event });
    }
    account.close(100);
    assert_eq!(account.totals.lived, 100 + (30 - 10) + (100 - 40));
}

#[test]
fn a_new_thread_waits_for_its_first_turn() {
    let child = Thread { pid: 20, tid: 20 };
    let fork = Event::Fork {
        child,
        parent: numbered(11),
    };
    let turn = Event::Resume { thread: child };
    let waited = |sees_switches| {
        let mut account = account();
        account.sees_switches = sees_switches;
        let events = [fork.clone(), turn.clone(), Event::Exit { thread: child }];
        for (index, event) in events.into_iter().enumerate() {
            let time = 10 * (index as u64 + 1);
            account.take(Stamped { time, event });
        }
        account.close(100);
        assert_eq!(account.totals.unpaired, 0);
        Vec::from_iter(account.totals.preempted.values().map(figures))
    };
    assert_eq!(waited(true), [(1, 10, 10)]);
    // Where switches are not seen, it would never end.
    assert!(waited(false).is_empty());
}
