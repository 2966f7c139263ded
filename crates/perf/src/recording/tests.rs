//! Hand-made recordings.

use super::*;
use crate::account::{Cause, Doing, Held, Span, Waker, Woken};
use crate::symbols::Function;
use profile::{By, Holder, Kind, Profile};
use stats::record::{Mode, Subject};

const WRITE: u32 = 4;

fn named(user: &[&str], kernel: &[&str]) -> Named {
    let function = |&name: &&str| Function {
        name: name.to_owned(),
        system: false,
        ..Function::default()
    };
    Named {
        process: "p".to_owned(),
        thread: None,
        kernel: kernel.iter().map(|&name| name.to_owned()).collect(),
        user: user.iter().map(function).collect(),
    }
}

/// Waits that ended: the longest, and others that share the rest.
fn tally(count: u64, total: u64, worst: u64) -> Tally {
    let mut tally = Tally::default();
    tally.add(ended(worst));
    for _ in 1..count {
        tally.add(ended((total - worst) / (count - 1)));
    }
    tally
}

/// A wait that ended.
fn ended(nanoseconds: u64) -> Span {
    Span {
        part: nanoseconds,
        whole: nanoseconds,
        ended: true,
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
        setting: Setting {
            clock: Clock::CpuClock,
            sample_seconds: 0.01,
            cpus: 2,
            sees_all: true,
            sees_contention: true,
            hidden: Hidden::default(),
        },
        span: Duration::from_secs(1),
        used: Duration::ZERO,
        stolen: Duration::from_millis(100),
        throttled: None,
        missing: Vec::new(),
        stacks: Arc::new(vec![
            named(&["work", "main"], &[]),
            named(&["work", "main"], &[&["osq_lock"][..], &MUNMAP].concat()),
            named(&["work", "main"], &MUNMAP),
            named(
                &["std::sync::mutex::Mutex::lock", "hold", "main"],
                &["__schedule", "futex_wait"],
            ),
        ]),
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
    let Recording { mut seen, .. } = recording();
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
fn what_is_lost_is_not_taken_for_more_of_the_rest() {
    let of = |samples: u64, lost: u64| {
        let Recording { mut seen, .. } = recording();
        let totals = &mut seen.totals;
        for stacks in [&mut totals.samples, &mut totals.loose] {
            stacks.insert(0, samples);
        }
        totals.lost = lost;
        let recording = Recording::new(seen);
        let subject = Subject::new("p", "os", 2, Mode::Threads);
        let mut profile = recording.fill(Profile::new(subject, 1.0, ""));
        recording.judge(&mut profile);
        (profile.locks[0].share, profile.bottleneck)
    };
    // A thread computes for 1.25 of the two seconds, which its samples show, or would.
    let (share, sentence) = of(125, 0);
    assert!((share - 0.35).abs() < 1e-9 && sentence.starts_with("35 % of task time waits for "));
    assert_eq!(
        of(5, 120),
        (share, sentence + "; 60 % of task time is not seen")
    );
}

#[test]
fn where_others_are_not_seen_nothing_is_said_of_them() {
    let Recording { mut seen, .. } = recording();
    seen.setting.sees_all = false;
    let recording = Recording::new(seen);
    assert_eq!(recording.foreign(), None);
    assert!(recording.notes().is_empty());
}

#[test]
fn nothing_is_busy_for_longer_than_it_is_on_a_cpu() {
    let mut recording = recording();
    // A quarter of a second of samples; all but a fifth off CPU.
    recording.seen.totals.lived = 650_000_000;
    let busy = recording.busy().total();
    assert!((busy - 0.2).abs() < 1e-9, "{busy}");
    recording.seen.setting.hidden.waits = true;
    let busy = recording.busy().total();
    assert!((busy - 0.25).abs() < 1e-9, "{busy}");
}

#[test]
fn a_spin_lock_of_a_program_is_a_lock() {
    let mut recording = recording();
    Arc::make_mut(&mut recording.seen.stacks)
        .push(named(&["pthread_spin_lock", "push", "main"], &[]));
    recording.seen.totals.samples.insert(4, 20);
    recording.seen.totals.loose.insert(4, 20);
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
    let seen = &mut recording.seen;
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
    let seen = &mut recording.seen;
    let first = seen.stacks.len() as StackId;
    let agent = |kernel: &[&str]| Named {
        process: "agent".to_owned(),
        ..named(&[], kernel)
    };
    Arc::make_mut(&mut seen.stacks).extend([
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
            .for_each(|&time| held.add(ended(1_000_000 * time), 500_000 * time));
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
    let times = agent.times.expect("both ends were seen");
    assert!(
        close(times.total, 0.029) && close(times.mean, 0.0058),
        "{agent:?}"
    );
    assert!(
        close(times.worst, 0.009) && close(times.p99, 0.009),
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
        let Recording { mut seen, .. } = recording();
        seen.totals.recorded_holds = recorded;
        Recording::new(seen).notes().join("\n")
    };
    assert!(notes(Some(250_000_000)).contains("recorded for 25 % of the time"));
    assert!(!notes(Some(990_000_000)).contains("holders"));
    assert!(!notes(None).contains("holders"));
}

#[test]
fn a_recording_is_of_processes_whose_time_it_has() {
    let Recording { mut seen, .. } = recording();
    let of = |seen: Seen, seconds: f64| {
        let recording = Recording::new(seen);
        let used = Duration::from_secs_f64(seconds);
        recording.seen.setting.can_be_of(recording.sampled(), used)
    };
    let sampled = Recording::new(recording().seen).sampled().as_secs_f64();
    assert!(of(recording().seen, sampled) && of(recording().seen, 3.0 * sampled));
    assert!(!of(recording().seen, 9.0 * sampled.max(0.1)));
    // Nothing was recorded of a second of work.
    seen.totals.samples.clear();
    assert!(of(recording().seen, 0.0));
    assert!(!of(seen, 1.0));
    let Recording {
        seen: mut hidden, ..
    } = recording();
    hidden.totals.samples.clear();
    hidden.setting.hidden.kernel = true;
    assert!(of(hidden, 1.0), "it worked in the kernel");
}

/// A recording of two seconds of two threads: one works and waits, the other has nothing to do.
fn with_idle() -> Recording {
    let Recording { mut seen, .. } = recording();
    let pool = Named {
        thread: Some("pool".to_owned()),
        ..named(
            &["pthread_cond_wait", "idle", "main"],
            &["__schedule", "futex_wait"],
        )
    };
    let read = named(&["main"], &["__schedule", "io_schedule", "__x64_sys_read"]);
    Arc::make_mut(&mut seen.stacks).extend([pool, read]);
    seen.totals.lived += 2_100_000_000;
    let asleep = [
        (4, tally(1, 1_500_000_000, 1_500_000_000)),
        (5, tally(1, 300_000_000, 300_000_000)),
    ];
    seen.totals.asleep.extend(asleep);
    let sleep = |thread: &str, function: &str, throughout| Sleep {
        process: "p".to_owned(),
        thread: thread.to_owned(),
        function: function.to_owned(),
        throughout,
    };
    seen.totals.early = HashMap::from([
        (sleep("pool", "ep_poll", false), 150_000_000),
        (sleep("pool", "futex_do_wait", false), 50_000_000),
        (sleep("other", "io_schedule", false), 100_000_000),
    ]);
    Recording::new(seen)
}

#[test]
fn the_parts_of_the_time_are_all_of_it() {
    let spent = with_idle().spent().expect("everything is seen");
    let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
    // Of 0.25 s of samples 0.1 s are within a wait for a lock, and 0.1 s spin before one.
    assert!(close(spent.work, 0.05), "{spent:?}");
    assert!(close(spent.locks, 0.2 + 0.4), "{spent:?}");
    assert!(close(spent.blocked, 0.3 + 0.1), "{spent:?}");
    assert!(close(spent.queued, 0.05), "{spent:?}");
    assert!(close(spent.idle, 1.5 + 0.2), "{spent:?}");
    assert!(close(spent.stolen, 0.1), "{spent:?}");
    let all: f64 = spent.parts(0.0).map(|(_, seconds)| seconds).sum();
    assert!(close(all, 4.1), "{spent:?}");
}

#[test]
fn who_waits_for_work_waits_for_no_lock() {
    let recording = with_idle();
    let names: Vec<String> = recording
        .locks(1.0)
        .into_iter()
        .map(|lock| lock.name)
        .collect();
    assert_eq!(names, ["mmap_lock", "std::sync::Mutex"]);
    let (idle, others) = recording.waiting().split(IDLE);
    assert!((idle.total() - 1.7).abs() < 1e-9, "{idle:?}");
    assert!((others.total() - 0.95).abs() < 1e-9, "{others:?}");
}

#[test]
fn time_is_broken_down_by_calls_and_threads() {
    let parts = with_idle().parts();
    let row = |by: By, name: &str| {
        let found = parts[&by].iter().find(|part| part.name == name);
        let part = found.unwrap_or_else(|| panic!("{name} in {:?}", parts[&by]));
        [part.busy, part.waits, part.idle].map(|seconds| (1000.0 * seconds).round())
    };
    assert_eq!(row(By::Call, "read from main"), [0.0, 300.0, 0.0]);
    assert_eq!(row(By::Call, "user code from work"), [50.0, 50.0, 0.0]);
    assert_eq!(row(By::Thread, "p/pool"), [0.0, 0.0, 1700.0]);
    assert_eq!(row(By::Thread, "p/other"), [0.0, 100.0, 0.0]);
    assert_eq!(row(By::Function, "main"), [250.0, 750.0, 1500.0]);
    assert_eq!(row(By::Process, "p"), [250.0, 850.0, 1700.0]);
}

#[test]
fn clocks_that_contradict_each_other_are_a_doubt() {
    let doubt = |used: f64| {
        let Recording { mut seen, .. } = recording();
        seen.used = Duration::from_secs_f64(used);
        Recording::new(seen).doubt()
    };
    // Two seconds lived, 0.45 off CPUs.
    assert_eq!(doubt(1.6), None);
    assert!(doubt(2.5).is_some_and(|why| why.contains("2.5 s of CPU time")));
}

#[test]
fn without_tracepoints_of_locks_waits_are_where_threads_sleep() {
    let Recording { mut seen, .. } = recording();
    seen.totals
        .asleep
        .insert(2, tally(5, 200_000_000, 90_000_000));
    seen.totals.waits.clear();
    let of = |seen: Seen| Recording::new(seen).locks(2.0);
    let is_write = |lock: &&Lock| lock.kind == Kind::RwsemWrite;
    seen.setting.sees_contention = false;
    let locks = of(seen);
    let mmap = locks.iter().find(is_write).expect("a row");
    assert_eq!((mmap.name.as_str(), mmap.contentions), ("mmap_lock", 5));
    assert!((mmap.wait - 0.2).abs() < 1e-9, "{mmap:?}");
}

#[test]
fn who_wakes_a_waiter_held_the_lock() {
    let Recording { mut seen, .. } = recording();
    let waking = &[
        "try_to_wake_up",
        "wake_up_q",
        "futex_wake",
        "__x64_sys_futex",
    ];
    let writer = Named {
        thread: Some("writer".to_owned()),
        ..named(
            &["std::sync::mutex::Mutex::unlock", "compact", "main"],
            waking,
        )
    };
    let timer = named(
        &["work"],
        &["try_to_wake_up", "asm_sysvec_apic_timer_interrupt"],
    );
    Arc::make_mut(&mut seen.stacks).extend([writer, timer]);
    let word = Word::At(0x1000);
    seen.words.insert(word, "table".to_owned());
    let waker = |stack, is_watched| Waker { stack, is_watched };
    let at = |waker| (3, Cause::Sleep(3, Some(word)), waker);
    let queued = tally(2, 80_000_000, 50_000_000);
    let once = |time| woken(tally(1, time, time), Tally::default());
    seen.totals
        .words
        .insert((3, word), tally(4, 400_000_000, 1));
    seen.totals.woken = HashMap::from([
        (
            at(waker(4, true)),
            woken(tally(2, 300_000_000, 150_000_000), queued),
        ),
        (at(waker(0, false)), once(100_000_000)),
        (at(waker(5, true)), once(900_000_000)),
    ]);
    let recording = Recording::new(seen);
    let holders = recording.holders();
    let rows: Vec<_> = holders
        .iter()
        .map(|one| (one.place(), one.function.as_str(), one.holds, one.share))
        .collect();
    let expected = [
        ("p/writer".to_owned(), "compact", 2, 0.75),
        ("p".to_owned(), "work", 1, 0.25),
    ];
    assert_eq!(rows, expected);
    assert_eq!(holders[0].lock, "std::sync::Mutex table");
    assert_eq!(holders[0].times, None);
    // What they then waited for a CPU is known of the lock, and of this holder.
    let locks = recording.locks(2.0);
    let lock = locks.iter().find(|lock| lock.kind == Kind::Futex);
    let of_lock = lock.and_then(|lock| lock.queued.clone()).expect("some");
    assert!((of_lock.total - 0.08).abs() < 1e-9 && of_lock.worst == 0.05);
    assert_eq!(holders[0].queued.as_ref(), Some(&of_lock));
    assert_eq!(holders[1].queued, None);
}

fn woken(slept: Tally, queued: Tally) -> Woken {
    Woken { slept, queued }
}

#[test]
fn a_lock_of_the_kernel_has_the_waits_for_a_cpu_of_its_own_mode() {
    let Recording { mut seen, .. } = recording();
    let (stack, is_watched) = (0, true);
    let queued = tally(2, 60_000_000, 40_000_000);
    let key = (3, Cause::Lock(2, WRITE), Waker { stack, is_watched });
    let woken = woken(tally(2, 100_000_000, 60_000_000), queued.clone());
    seen.totals.woken.insert(key, woken);
    let locks = Recording::new(seen).locks(2.0);
    let found = locks.iter().map(|lock| (lock.kind, lock.queued.clone()));
    let expected = [(Kind::RwsemWrite, queued.spread()), (Kind::Futex, None)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn moments_have_the_stacks_of_each_slice() {
    let mut recording = recording();
    let timeline = &mut recording.seen.totals.timeline;
    for time in [0, 1, 1_500_000] {
        timeline.count(Doing::Sampled(0), time);
    }
    timeline.add(Doing::Asleep(3), 500_000, 1_000_000);
    timeline.add(Doing::Queued(0), 1_000_000, 1_250_000);
    // A wait is also the samples and the sleep within it.
    timeline.add(Doing::Waiting(2, WRITE), 0, 2_000_000);
    let moments = recording.moments();
    let all = |slices: &[Stacks]| -> Vec<Vec<(String, f64)>> {
        let owned = |(stack, seconds): (&str, f64)| (stack.to_owned(), seconds);
        slices
            .iter()
            .map(|one| one.iter().map(owned).collect())
            .collect()
    };
    let work = || "p;main;work".to_owned();
    assert_eq!(
        all(&moments.busy),
        [[(work(), 0.02)], [(work(), 0.01)]].map(Vec::from)
    );
    let futex = "p;main;hold;std::sync::mutex::Mutex::lock;futex_wait_[k];__schedule_[k]";
    let queued = format!("preempted;{}", work());
    assert_eq!(
        all(&moments.waits),
        [[(futex.to_owned(), 5e-4)], [(queued, 2.5e-4)]].map(Vec::from)
    );
}

#[test]
fn without_tracepoints_of_mmap_lock_who_wakes_a_waiter_held_it() {
    let holder = |is_recorded: bool| {
        let Recording { mut seen, .. } = recording();
        let waking = [
            "try_to_wake_up",
            "wake_up_q",
            "rwsem_wake",
            "up_read",
            "do_madvise",
        ];
        Arc::make_mut(&mut seen.stacks).push(named(&["work"], &waking));
        // What a thread in another call has where a futex's word would be.
        let word = Word::At(0x1000);
        seen.words.insert(word, "table".to_owned());
        let slept = tally(2, 300_000_000, 150_000_000);
        seen.totals.asleep.insert(2, slept.clone());
        let (stack, is_watched) = (4, true);
        let cause = Cause::Sleep(2, Some(word));
        let key = (2, cause, Waker { stack, is_watched });
        let woken = woken(slept, Tally::default());
        seen.totals.woken.insert(key, woken);
        if is_recorded {
            seen.totals.holds.insert((2, true, true), Held::default());
        }
        Recording::new(seen).holders().remove(0)
    };
    let Holder {
        lock,
        function,
        kind,
        ..
    } = holder(false);
    let found = (lock.as_str(), function.as_str(), kind);
    assert_eq!(found, ("mmap_lock", "do_madvise", Kind::RwsemRead));
    assert_eq!(holder(true).function, "__vm_munmap");
}
