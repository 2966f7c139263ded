//! Hand-made recordings.

use super::*;
use crate::account::Held;
use crate::symbols::Function;
use profile::{Holder, Kind};

const WRITE: u32 = 4;

fn named(user: &[&str], kernel: &[&str]) -> Named {
    let function = |&name: &&str| Function {
        name: name.to_owned(),
        system: false,
        ..Function::default()
    };
    Named {
        process: "p".to_owned(),
        kernel: kernel.iter().map(|&name| name.to_owned()).collect(),
        user: user.iter().map(function).collect(),
    }
}

fn tally(count: u64, total: u64, worst: u64) -> Tally {
    Tally {
        count,
        total,
        worst,
    }
}

const MUNMAP: [&str; 3] = [
    "rwsem_down_write_slowpath",
    "down_write_killable",
    "__vm_munmap",
];

/// 100 samples a second: busy in user code, spinning for `mmap_lock`, waiting for it, and waiting
/// on a futex.
fn recording() -> Recording {
    let mut totals = Totals::default();
    totals.samples.extend([(0, 5), (1, 20)]);
    totals.loose.extend([(0, 5), (1, 10)]);
    totals
        .waits
        .insert((2, WRITE), tally(3, 600_000_000, 300_000_000));
    totals.spun.insert(2, 100_000_000);
    totals.asleep.insert(3, tally(2, 400_000_000, 250_000_000));
    totals.preempted.insert(0, tally(1, 50_000_000, 50_000_000));
    totals.foreign = 20;
    totals.lived = 2_000_000_000;
    Recording::new(Seen {
        clock: Clock::CpuClock,
        span: Duration::from_secs(1),
        sample_seconds: 0.01,
        cpus: 2,
        sees_all: true,
        hidden: Hidden::default(),
        missing: Vec::new(),
        stacks: vec![
            named(&["work", "main"], &[]),
            named(&["work", "main"], &[&["osq_lock"][..], &MUNMAP].concat()),
            named(&["work", "main"], &MUNMAP),
            named(
                &["std::sync::mutex::Mutex::lock", "hold", "main"],
                &["__schedule", "futex_wait"],
            ),
        ],
        words: HashMap::new(),
        totals,
    })
}

#[test]
fn busy_stacks_begin_with_the_command() {
    let busy = recording().busy();
    let expected = [
        ("p;main;work", 0.05),
        (
            "p;main;work;__vm_munmap_[k];down_write_killable_[k];rwsem_down_write_slowpath_[k];\
             osq_lock_[k]",
            0.2,
        ),
    ];
    assert_eq!(busy.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn waiting_is_off_cpu_or_within_a_wait() {
    let waiting = recording().waiting();
    assert!((waiting.total() - 0.55).abs() < 1e-9, "{waiting:?}");
    let preempted = waiting
        .iter()
        .find(|(stack, _)| stack.starts_with("preempted;"));
    assert_eq!(preempted, Some(("preempted;p;main;work", 0.05)));
}

#[test]
fn one_row_has_what_was_waited_and_what_was_spun() {
    let locks = recording().locks(2.0);
    assert_eq!(locks.len(), 2, "{locks:?}");
    let mmap = &locks[0];
    assert_eq!(
        (mmap.name.as_str(), mmap.kind),
        ("mmap_lock", Kind::RwsemWrite)
    );
    assert_eq!((mmap.caller.as_str(), mmap.contentions), ("__vm_munmap", 3));
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
    assert!(
        close(mmap.wait, 0.6) && close(mmap.worst, 0.3) && close(mmap.mean, 0.2),
        "{mmap:?}"
    );
    // Ten of the twenty spinning samples lie in traced waits.
    assert!(close(mmap.spin, 0.1) && close(mmap.share, 0.35), "{mmap:?}");
    let futex = &locks[1];
    assert_eq!(
        (futex.name.as_str(), futex.kind),
        ("std::sync::Mutex", Kind::Futex)
    );
    assert_eq!((futex.caller.as_str(), futex.contentions), ("hold", 2));
    assert!(close(futex.wait, 0.4), "{futex:?}");
}

#[test]
fn what_is_doubtful_is_noted() {
    let Recording(mut seen) = recording();
    seen.totals.lost = 7;
    seen.totals.unpaired = 3;
    seen.missing = vec!["kernel stacks: no".to_owned()];
    let notes = Recording::new(seen).notes().join("\n");
    for part in [
        "kernel stacks: no",
        "lost records: 7",
        "not counted: 3",
        "took 10.0 %",
    ] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn where_others_are_not_seen_nothing_is_said_of_them() {
    let Recording(mut seen) = recording();
    seen.sees_all = false;
    let recording = Recording::new(seen);
    assert_eq!(recording.foreign(), None);
    assert!(recording.notes().is_empty());
}

#[test]
fn nothing_is_busy_for_longer_than_it_is_on_a_cpu() {
    let mut recording = recording();
    // A quarter of a second of samples; all but a fifth off CPU.
    recording.0.totals.lived = 650_000_000;
    let busy = recording.busy().total();
    assert!((busy - 0.2).abs() < 1e-9, "{busy}");
    recording.0.hidden.waits = true;
    let busy = recording.busy().total();
    assert!((busy - 0.25).abs() < 1e-9, "{busy}");
}

#[test]
fn a_spin_lock_of_a_program_is_a_lock() {
    let mut recording = recording();
    recording
        .0
        .stacks
        .push(named(&["pthread_spin_lock", "push", "main"], &[]));
    recording.0.totals.samples.insert(4, 20);
    recording.0.totals.loose.insert(4, 20);
    let locks = recording.locks(1.0);
    let row = locks
        .iter()
        .find(|lock| lock.kind == Kind::UserSpin)
        .expect("a row");
    assert_eq!(
        (row.name.as_str(), row.caller.as_str()),
        ("pthread_spinlock", "push")
    );
    assert!((row.spin - 0.2).abs() < 1e-9, "{row:?}");
}

#[test]
fn two_mutexes_behind_one_function_are_two_rows() {
    let mut recording = recording();
    let seen = &mut recording.0;
    for (at, milliseconds, name) in [(0x1000, 300, "accounts"), (0x2000, 100, "at 0x2000")] {
        let word = Word::At(at);
        let total = milliseconds * 1_000_000;
        seen.totals.words.insert((3, word), tally(1, total, total));
        seen.words.insert(word, name.to_owned());
    }
    let locks = recording.locks(1.0);
    let rows: Vec<(&str, f64)> = locks
        .iter()
        .filter(|lock| lock.kind == Kind::Futex)
        .map(|lock| (lock.name.as_str(), lock.wait))
        .collect();
    let expected = [
        ("std::sync::Mutex accounts", 0.3),
        ("std::sync::Mutex at 0x2000", 0.1),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn holders_are_named_by_what_they_ran() {
    let mut recording = recording();
    let seen = &mut recording.0;
    let first = seen.stacks.len() as StackId;
    let agent = |kernel: &[&str]| Named {
        process: "agent".to_owned(),
        ..named(&[], kernel)
    };
    seen.stacks.extend([
        agent(&[
            "__mmap_lock_do_trace_acquire_returned",
            "m_start",
            "seq_read_iter",
        ]),
        agent(&[
            "__mmap_lock_do_trace_acquire_returned",
            "m_start",
            "seq_read_iter",
            "other",
        ]),
        agent(&["smap_gather_stats", "show_smap", "seq_read_iter"]),
        agent(&["m_next", "seq_read_iter"]),
        named(&[], &MUNMAP),
    ]);
    let held = |times: &[u64], samples: &[(StackId, u64)]| {
        let mut held = Held::default();
        times
            .iter()
            .for_each(|&time| held.add(1_000_000 * time, 500_000 * time));
        held.samples.extend(samples.iter().copied());
        held
    };
    let totals = &mut seen.totals;
    totals.waited_for_holds = 20_000_000;
    totals.holds = HashMap::from([
        (
            (first, false, false),
            held(&[5; 4], &[(first + 2, 9), (first + 3, 1)]),
        ),
        ((first + 1, false, false), held(&[9], &[])),
        ((first + 4, true, true), held(&[1], &[(0, 1)])),
    ]);
    let holders = recording.holders();
    let names = |one: &Holder| {
        (
            one.process.clone(),
            one.function.clone(),
            one.watched,
            one.kind,
        )
    };
    let all: Vec<_> = holders.iter().map(names).collect();
    let expected = [
        (
            "agent".to_owned(),
            "show_smap".to_owned(),
            false,
            Kind::RwsemRead,
        ),
        (
            "p".to_owned(),
            "__vm_munmap".to_owned(),
            true,
            Kind::RwsemWrite,
        ),
    ];
    assert_eq!(all, expected);
    let agent = &holders[0];
    let close = |a: f64, b: f64| (a / b - 1.0).abs() < 0.01;
    assert_eq!(agent.holds, 5);
    assert!(
        close(agent.total, 0.029) && close(agent.mean, 0.0058),
        "{agent:?}"
    );
    assert!(
        close(agent.worst, 0.009) && close(agent.p99, 0.009),
        "{agent:?}"
    );
    assert!(
        close(agent.waited, 0.0145) && close(agent.share, 0.725),
        "{agent:?}"
    );
}

#[test]
fn a_part_of_the_time_is_noted() {
    let notes = |recorded| {
        let Recording(mut seen) = recording();
        seen.totals.recorded_holds = recorded;
        Recording::new(seen).notes().join("\n")
    };
    assert!(notes(Some(250_000_000)).contains("recorded for 25 % of the time"));
    assert!(!notes(Some(990_000_000)).contains("holders"));
    assert!(!notes(None).contains("holders"));
}

#[test]
fn a_recording_is_of_processes_whose_time_it_has() {
    let Recording(mut seen) = recording();
    let of = |seen: Seen, seconds: f64| {
        let recording = Recording::new(seen);
        recording.is_of(Duration::from_secs_f64(seconds))
    };
    let sampled = Recording::new(recording().0).sampled().as_secs_f64();
    assert!(of(recording().0, sampled) && of(recording().0, 3.0 * sampled));
    assert!(!of(recording().0, 9.0 * sampled.max(0.1)));
    // Nothing was recorded of a second of work.
    seen.totals.samples.clear();
    assert!(of(recording().0, 0.0));
    assert!(!of(seen, 1.0));
    let Recording(mut hidden) = recording();
    hidden.totals.samples.clear();
    hidden.hidden.kernel = true;
    assert!(of(hidden, 1.0), "it worked in the kernel");
}
