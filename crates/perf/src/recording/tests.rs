//! Recordings made by hand.

use super::*;
use crate::symbols::Function;
use profile::Kind;

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

/// 100 samples a second: busy in user code, spinning for `mmap_lock`, waiting for it,
/// and on a futex.
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
    Recording::new(Seen {
        clock: Clock::CpuClock,
        span: Duration::from_secs(1),
        sample_seconds: 0.01,
        cpus: 2,
        sees_all: true,
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
    // Ten of the twenty spinning samples lay in traced waits.
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
        "7 records were lost",
        "are not counted: 3",
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
