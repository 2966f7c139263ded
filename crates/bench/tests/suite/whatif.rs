//! A system without a cause, compared with the system that came after it.

use baselines::selected::Queueing;
use baselines::{Preset, Row};
use bench::simulated::{Cause, Simulated, WhatIf};
use bench::{Mode, Plan, Target};
use sim::profile::MachineProfile;
use std::time::Duration;

/// A preset without some causes.
struct System<'a> {
    preset: Preset,
    without: &'a [&'a str],
}

impl<'a> System<'a> {
    fn new(preset: Preset, without: &'a [&'a str]) -> Self {
        System { preset, without }
    }
}

/// A workload by a number of tasks of a kind on the machine of a case study.
struct Case {
    machine: &'static str,
    workload: &'static str,
    tasks: usize,
    mode: Mode,
    span: Duration,
}

impl Case {
    fn plan(&self) -> Plan {
        Plan {
            workload: workloads::find(self.workload).expect("a workload").into(),
            tasks: self.tasks,
            mode: self.mode,
            count: None,
        }
    }

    fn system(&self, preset: Preset, causes: &[&str]) -> Simulated {
        let machine = MachineProfile::named(self.machine).expect("a machine");
        let cause = |text: &&str| text.parse().expect("a cause");
        Simulated {
            without: causes.iter().map(cause).collect(),
            ..Simulated::new(preset, machine, 1)
        }
    }

    /// Operations a second of `preset` without `causes`.
    fn rate(&self, preset: Preset, causes: &[&str]) -> f64 {
        let window = self.system(preset, causes).sample(&self.plan(), self.span);
        window.expect("runs").rate()
    }

    fn check(&self, before: System<'_>, after: System<'_>, within: [f64; 2]) {
        let [before, after] = [before, after].map(|one| self.rate(one.preset, one.without));
        let ratio = before / after;
        let Case {
            workload, tasks, ..
        } = self;
        assert!(
            (within[0]..=within[1]).contains(&ratio),
            "{workload}, {tasks} tasks: {before:.0} and {after:.0} a second, ratio {ratio:.3}"
        );
    }
}

/// The machine of case study 000.
const STUDY_000: &str = "freebsd-96";

const INVL_GEN: &str = "lock invl gen";
/// The mutexes of swap reservation: the next cause for either system.
const SWAP: [&str; 2] = ["lock swap devices", "lock swap user"];

/// Delayed invalidation without its mutex is the same by epochs, which cost something of their own:
/// at 96 tasks up to the next cause; and without that, and without the lines of the list of blocks,
/// up to the time that the list takes.
#[test]
fn freebsd_without_the_invalidation_mutex_is_freebsd_with_epochs() {
    let case = |tasks| Case {
        machine: STUDY_000,
        workload: "mmap1",
        tasks,
        mode: Mode::Processes,
        span: Duration::from_millis(1),
    };
    let (before, after) = (Preset::FREEBSD_DI, Preset::FREEBSD_EPOCH);
    case(96).check(
        System::new(before, &[INVL_GEN]),
        System::new(after, &[]),
        [0.8, 1.1],
    );
    let list = ["Di.globals", "Di.blocks", "Turnstiles.chains"].map(|line| format!("line {line}"));
    let list = list.each_ref().map(String::as_str);
    let without = [&[INVL_GEN][..], &SWAP, &list].concat();
    for tasks in [8, 32] {
        case(tasks).check(
            System::new(before, &without),
            System::new(after, &SWAP),
            [0.85, 1.05],
        );
    }
}

/// Linux 5.15 without the lock of the map, which faults acquire for reading, is Linux 6.12, where
/// they do not.
#[test]
fn linux_without_the_lock_of_the_map_is_linux_with_locks_of_mappings() {
    let case = |tasks| Case {
        machine: STUDY_000,
        workload: "page_fault1",
        tasks,
        mode: Mode::Threads,
        span: Duration::from_micros(500),
    };
    let (before, after) = (Preset::LINUX_5_15, Preset::LINUX_6_12);
    case(24).check(
        System::new(before, &["lock mmap_lock"]),
        System::new(after, &[]),
        [0.95, 1.05],
    );
    // `pgd` lies in the line of the lock's count, which is still written.
    let both = ["lock mmap_lock", "line mmap_lock"];
    case(96).check(
        System::new(before, &both),
        System::new(after, &[]),
        [0.7, 1.4],
    );
}

/// The queue of active pages: its lock, that of the free pages, and its lines.
const PAGE_QUEUE: [&str; 4] = [
    "lock pageqlock",
    "lock fpageqlock",
    "line page_active",
    "line vm_page.pageq",
];
const BIGLOCK_WITHOUT_QUEUE: Preset = Preset(&Row {
    name: "openbsd-biglock without a queue",
    queues: Queueing::Nowhere,
    ..*Preset::OPENBSD_BIGLOCK.0
});
const UNLOCKED_WITHOUT_QUEUE: Preset = Preset(&Row {
    name: "openbsd-unlocked without a queue",
    queues: Queueing::Nowhere,
    ..*Preset::OPENBSD_UNLOCKED.0
});

/// Page faults on the machine of case study 003.
fn faults_of_openbsd(tasks: usize) -> Case {
    Case {
        machine: "arm64-16",
        workload: "page_fault1",
        tasks,
        mode: Mode::Processes,
        span: Duration::from_millis(1),
    }
}

/// OpenBSD without `pageqlock` is OpenBSD whose pages are on no queue, under the big lock, where
/// nobody waits for it, and without, where all do. What is left is the queue's own instructions.
#[test]
fn openbsd_without_the_lock_of_the_page_queue_is_openbsd_without_the_queue() {
    for tasks in [8, 16] {
        let case = faults_of_openbsd(tasks);
        for (before, after) in [
            (Preset::OPENBSD_BIGLOCK, BIGLOCK_WITHOUT_QUEUE),
            (Preset::OPENBSD_UNLOCKED, UNLOCKED_WITHOUT_QUEUE),
        ] {
            let before = System::new(before, &PAGE_QUEUE);
            case.check(before, System::new(after, &[]), [0.94, 1.02]);
        }
    }
}

/// OpenBSD without the big lock and without the queue's locks inside of it is OpenBSD whose faults
/// do not take the big lock, without the queue's.
#[test]
fn locks_inside_of_each_other_can_be_taken_away_together() {
    let depths = ["lock KERNEL_LOCK", "line KERNEL_LOCK's depths"];
    let all = [&depths[..], &PAGE_QUEUE].concat();
    for tasks in [4, 8, 16] {
        faults_of_openbsd(tasks).check(
            System::new(Preset::OPENBSD_BIGLOCK, &all),
            System::new(Preset::OPENBSD_UNLOCKED, &PAGE_QUEUE),
            [0.93, 1.02],
        );
    }
}

/// Behind the big lock is the page queue's, although nobody waits for it while each asks in turn.
#[test]
fn a_lock_inside_of_one_that_is_taken_away_is_the_next_cause() {
    let case = faults_of_openbsd(16);
    let system = case.system(Preset::OPENBSD_BIGLOCK, &["lock KERNEL_LOCK"]);
    let seen = system.attribute(&case.plan(), case.span).expect("runs");
    let (cause, part) = &Cause::of(&seen)[0];
    assert_eq!(*cause, Cause::Lock("pageqlock".into()));
    assert!(*part > 0.2, "{part:.3}");
}

/// Case study 003: 12 % of the CPUs' time is spent spinning for `pageqlock` while 17 jobs build a
/// kernel. So without it a build is at most 1 / (1 - 0.12) times as fast.
#[test]
fn a_build_without_the_lock_of_the_page_queue_gains_what_the_study_says_it_takes() {
    let case = Case {
        machine: "arm64-16",
        workload: "build",
        tasks: 17,
        mode: Mode::Processes,
        span: Duration::ZERO,
    };
    let plan = Plan {
        count: Some(2 * 17),
        ..case.plan()
    };
    // Which job takes which CPU differs from seed to seed, and a run by a tenth with it.
    let seconds = |preset, causes: &[&str]| -> f64 {
        let system = case.system(preset, causes);
        let run = |seed| system.complete(&plan, seed).expect("runs").real;
        (0..5).map(|seed| run(seed).as_secs_f64()).sum()
    };
    let before = seconds(Preset::OPENBSD_UNLOCKED, &[]);
    let gain = before / seconds(Preset::OPENBSD_UNLOCKED, &PAGE_QUEUE[..1]);
    assert!((1.05..1.0 / (1.0 - 0.12)).contains(&gain), "{gain:.3}");
    let queue = before / seconds(UNLOCKED_WITHOUT_QUEUE, &[]);
    assert!(
        (0.9..1.0).contains(&(gain / queue)),
        "{gain:.3} and {queue:.3}"
    );
}

/// The line of one counter, flushes, and time asleep can be taken away as well.
#[test]
fn each_kind_of_cause_can_be_taken_away() {
    let gain = |workload, tasks, mode, preset, cause| {
        let case = Case {
            machine: STUDY_000,
            workload,
            tasks,
            mode,
            span: Duration::from_millis(1),
        };
        case.rate(preset, &[cause]) / case.rate(preset, &[])
    };
    let linux = Preset::LINUX_6_12;
    let (threads, processes) = (Mode::Threads, Mode::Processes);
    let flushes = gain("tlb_flush1", 24, threads, linux, "flushes");
    assert!(flushes > 1.2, "{flushes:.2}");
    let memory = gain("page_fault1", 24, processes, linux, "memory");
    assert!(memory > 1.2, "{memory:.2}");
    let line = gain(
        "page_fault1",
        24,
        threads,
        Preset::LINUX_5_15,
        "line mmap_lock",
    );
    assert!(line > 1.5, "{line:.2}");
    let asleep = gain("desktop", 8, threads, Preset::SCALEVM, "sleeping");
    assert!(asleep > 1.1, "{asleep:.2}");
    let none = gain("mmap1", 8, processes, linux, "lock invl gen");
    assert_eq!(none, 1.0, "no such lock");
}

/// The ladder of FreeBSD's munmap begins with its mutex, and what is left at its top holds nobody
/// up.
#[test]
fn a_ladder_ends_where_no_cause_is_left() {
    let machine = MachineProfile::named("freebsd-96").expect("a machine");
    let target = Simulated::new(Preset::FREEBSD_DI, machine, 1);
    let case = Case {
        machine: STUDY_000,
        workload: "mmap1",
        tasks: 16,
        mode: Mode::Processes,
        span: Duration::from_millis(1),
    };
    let question = WhatIf {
        target: &target,
        plan: case.plan(),
        counts: &[1, 16],
        span: case.span,
        corners: false,
    };
    let answer = question.ask(|_, _| Box::new(super::Quiet)).expect("runs");
    let first = &answer.ladder[0];
    assert_eq!(first.without, [Cause::Lock("invl gen".into())]);
    let top = answer.ladder.last().expect("rungs");
    assert_eq!(top.next(), None, "{:?}", top.without);
    let gains: Vec<f64> = [first, top].map(|one| one.gain(&answer.base, 1)).into();
    assert!(gains[0] > 1.5 && gains[1] > 4.0 * gains[0], "{gains:?}");
    assert!(top.rates[1] > 0.85 * 16.0 * top.rates[0], "{:?}", top.rates);
    let epoch = answer
        .others
        .iter()
        .find(|one| one.0 == Preset::FREEBSD_EPOCH);
    assert!(epoch.is_some_and(|(_, rates)| rates[1] > answer.base.rates[1]));
    let alone = &answer.alone[0];
    assert_eq!(alone.without, first.without, "the largest gain comes first");
}

/// Most waits begin before a window or end after it: FreeBSD's mutex lets some last for several.
#[test]
fn waits_that_do_not_end_are_the_locks() {
    let case = |workload, mode| Case {
        machine: STUDY_000,
        workload,
        tasks: 96,
        mode,
        span: Duration::from_millis(1),
    };
    let processes = case("mmap1", Mode::Processes);
    // Linux's tasks sleep for it: that is the lock's time as well.
    let threads = case("malloc1", Mode::Threads);
    for (case, preset, lock) in [
        (&processes, Preset::OPENBSD_BIGLOCK, "KERNEL_LOCK"),
        (&processes, Preset::FREEBSD_DI, "invl gen"),
        (&threads, Preset::LINUX_6_12, "mmap_lock"),
    ] {
        let seen = case.system(preset, &[]).attribute(&case.plan(), case.span);
        let seen = seen.expect("runs");
        let first = &seen.locks[0];
        assert_eq!(first.what, lock);
        assert!(first.wait > 0.95, "{lock}: {:.3}", first.wait);
        let waits: f64 = seen.locks.iter().map(|lock| lock.wait).sum();
        assert!(waits < 1.001, "{lock}: {waits:.4}");
        let causes = Cause::of(&seen);
        assert_eq!(causes[0].0, Cause::Lock(lock.into()));
        assert!(causes.iter().all(|cause| cause.0 != Cause::Sleeping));
        assert!(seen.bottleneck().contains(lock), "{}", seen.bottleneck());
    }
}
