//! Workloads on simulated machines.

use baselines::Preset;
use bench::simulated::{Fitted, Placement, Simulated, partial};
use bench::{Mode, Plan, Target};
use sim::profile::MachineProfile;
use std::time::Duration;

/// A watched run is the same run, to the operation: watched figures may be compared with
/// others.
#[test]
fn watching_takes_no_simulated_time() {
    let cases = [
        (
            "mmap1",
            Preset::FREEBSD_EPOCH,
            "freebsd-96",
            24,
            Mode::Processes,
        ),
        (
            "mmap1",
            Preset::FREEBSD_DI,
            "freebsd-96",
            24,
            Mode::Processes,
        ),
        (
            "page_fault1",
            Preset::SCALEVM,
            "freebsd-96",
            12,
            Mode::Threads,
        ),
        (
            "desktop",
            Preset::OPENBSD_UNLOCKED,
            "pc-16c32t",
            8,
            Mode::Threads,
        ),
        ("fork1", Preset::LINUX_2_6_39, "xeon-4s", 8, Mode::Processes),
    ];
    for (workload, preset, machine, tasks, mode) in cases {
        let machine = MachineProfile::named(machine).expect("a machine");
        let target = Simulated::new(preset, machine, 1);
        let plan = Plan {
            workload: workloads::find(workload).expect("a workload").into(),
            tasks,
            mode,
            count: None,
        };
        let span = Duration::from_micros(500);
        let unwatched = target.sample(&plan, span).expect("runs").counts;
        let seen = target.observe(&plan, span).expect("runs");
        assert_eq!(seen.counts, unwatched, "{workload} on {preset}");
        assert!(
            unwatched.iter().sum::<u64>() > 0 && !seen.rows.is_empty(),
            "{workload} on {preset}"
        );
        let sampled = target.watch(&plan, span, 1000).expect("runs");
        assert_eq!(
            sampled.counts, unwatched,
            "{workload} on {preset}, with stacks"
        );
    }
}

fn four_cpus(preset: Preset) -> Simulated {
    shaped(preset, "arm64-16", [1, 4, 1])
}

/// With the costs of `machine`, in another shape.
fn shaped(preset: Preset, machine: &str, [sockets, cores, threads]: [usize; 3]) -> Simulated {
    let machine = MachineProfile::named(machine).expect("a machine");
    let profile = machine.with_topology(sockets, cores, threads);
    Simulated::new(preset, profile.expect("a shape"), 1)
}

fn plan(workload: &str, tasks: usize, count: Option<u64>) -> Plan {
    Plan {
        workload: workloads::find(workload).expect("a workload").into(),
        tasks,
        mode: Mode::Processes,
        count,
    }
}

/// Under each system's scheduler tasks share the CPUs, and so do the children that they fork
/// and wait for; the time for which they wait for one is counted apart.
#[test]
fn tasks_that_outnumber_cpus_share_them() {
    for preset in Preset::ALL {
        let target = four_cpus(preset);
        let build = plan("build", 6, Some(12));
        let scheduler = target.subject(&build).scheduler;
        assert_eq!(
            scheduler.as_deref(),
            Some(bench::ours::scheduler::of::<sim::Sim>(preset).name)
        );
        let times = target.complete(&build, 0).expect("runs");
        let (cpus, user) = (4.0 * times.real.as_secs_f64(), times.user.as_secs_f64());
        // A job computes for about 8 ms.
        assert!((0.08..0.12).contains(&user), "{preset}: {user} s of user");
        assert!(
            user + times.sys.as_secs_f64() <= cpus,
            "{preset}: {times:?}"
        );
        let seen = target
            .observe(&build, Duration::from_millis(1))
            .expect("runs");
        let queued = seen.attribution.queued;
        assert!((0.05..0.6).contains(&queued), "{preset}: {queued} queued");
    }
}

/// A job waits for its compiler: their time is counted once.
#[test]
fn a_parent_that_waits_for_its_child_takes_no_time() {
    let target = four_cpus(Preset::SCALEVM);
    let exim = plan("exim", 8, None);
    let seen = target
        .watch(&exim, Duration::from_millis(20), 1_000)
        .expect("runs");
    let all: u64 = seen.samples.iter().map(|one| one.nanoseconds).sum();
    let share = all as f64 / (8.0 * 20e6);
    assert!((0.95..1.05).contains(&share), "{share} of the tasks' time");
    let off = seen.attribution.blocked + seen.attribution.queued;
    assert!(off < 0.7, "{off} off CPUs");
}

/// Tasks that take their spaces down, and CPUs that have nothing to do meanwhile, are in no
/// account.
#[test]
fn accounts_end_with_the_work() {
    let target = four_cpus(Preset::LINUX_2_6_39);
    let exim = plan("exim", 8, Some(16));
    let seen = target
        .watch(&exim, Duration::from_millis(1), 1_000)
        .expect("runs");
    let real = seen.times.expect("its end").real.as_nanos() as f64;
    let all: u64 = seen.samples.iter().map(|one| one.nanoseconds).sum();
    let share = all as f64 / (8.0 * real);
    // A task that has done its last message before others has no time any more.
    assert!((0.7..1.05).contains(&share), "{share} of the tasks' time");
    let own = seen.attribution.own;
    assert!((0.0..1.0).contains(&own), "{own} is work");
}

/// A task that has finished a job takes the next that has not begun.
#[test]
fn jobs_are_dealt_out_as_they_end() {
    let target = four_cpus(Preset::SCALEVM);
    let build = plan("build", 6, Some(60));
    let seen = target.observe(&build, Duration::from_millis(1));
    let counts = seen.expect("runs").counts;
    assert_eq!(counts.iter().sum::<u64>(), 60);
    assert_ne!(counts, [10; 6], "chance makes some jobs longer");
}

/// A task that does nothing but system calls makes room for the others, too.
#[test]
fn each_task_gets_its_turn() {
    let target = four_cpus(Preset::SCALEVM);
    let mmap1 = plan("mmap1", 10, None);
    let done = target
        .sample(&mmap1, Duration::from_millis(60))
        .expect("runs")
        .counts;
    let (least, most) = (done.iter().min(), done.iter().max());
    let even = 2 * least.expect("tasks") > *most.expect("tasks");
    assert!(even, "{done:?}");
}

/// An iteration of page_fault1 ends with an unmap of all its pages, which a short window leaves
/// out.
#[test]
fn windows_hold_whole_iterations_or_say_that_they_do_not() {
    let mut target = four_cpus(Preset::SCALEVM);
    let plan = plan("page_fault1", 2, None);
    let window = |target: &Simulated| {
        let window = target.sample(&plan, Duration::from_millis(1));
        window.expect("runs")
    };
    let part = window(&target);
    assert!(!part.is_whole && part.span == Duration::from_millis(1));
    assert!(partial(&plan).contains("page_fault1"));
    target.conditions.whole = true;
    let whole = window(&target);
    let round = (workloads::SIZE / machine::PAGE_SIZE) as u64;
    assert!(whole.is_whole && whole.counts.iter().all(|&count| count >= round));
    assert!(whole.span > Duration::from_millis(10));
    assert!(whole.rate() < 0.99 * part.rate(), "{whole:?}, {part:?}");
}

#[test]
fn tasks_are_fitted_to_a_rate() {
    let target = four_cpus(Preset::SCALEVM);
    let span = Duration::from_millis(1);
    for (workload, tasks, rate, fitted) in [
        ("mmap1", 1, 1e6, Fitted::Call),
        ("mmap1", 3, 3e6, Fitted::Call),
        ("page_fault1", 1, 300e3, Fitted::Fault),
    ] {
        let plan = plan(workload, tasks, None);
        let (target, what, time) = target.fitted(&plan, span, rate).expect("possible");
        assert!(what == fitted && time > 0.0, "{workload}: {what:?}, {time}");
        let window = target.sample(&plan, span).expect("runs");
        assert!(
            (window.rate() / rate - 1.0).abs() < 0.02,
            "{workload}: {window:?}"
        );
    }
    let refused = target.fitted(&plan("mmap1", 1, None), span, 1e9);
    let why = refused.map(drop).expect_err("too fast").to_string();
    assert!(why.contains("does not reach"), "{why}");
}

/// Two tasks that meet at a line are slower where it has farther to go.
#[test]
fn spread_tasks_are_farther_apart() {
    let mut target = shaped(Preset::FREEBSD_DI, "freebsd-96", [2, 2, 1]);
    let mut rate = |place| {
        target.conditions.place = place;
        let window = target.sample(&plan("mmap1", 2, None), Duration::from_millis(1));
        window.expect("runs").rate()
    };
    let (near, far) = (rate(Placement::Pack), rate(Placement::Spread));
    assert!(far < 0.8 * near, "{far} and {near}");
}

/// Of eight tasks none finds `vm_committed_as` locked, until one of them is held up while it
/// has the lock.
#[test]
fn a_disturbed_warm_up_leaves_a_queue_where_there_may_be_one() {
    let mut target = shaped(Preset::LINUX_4_15, "freebsd-96", [1, 8, 1]);
    let mut rate = |tasks, disturbed| {
        target.conditions.disturbed = disturbed;
        let window = target.sample(&plan("mmap1", tasks, None), Duration::from_millis(2));
        window.expect("runs").rate()
    };
    let (calm, disturbed) = (rate(8, false), rate(8, true));
    assert!(disturbed < 0.5 * calm, "{disturbed} and {calm}");
    let (calm, disturbed) = (rate(1, false), rate(1, true));
    assert!(
        (disturbed / calm - 1.0).abs() < 0.05,
        "{disturbed} and {calm}"
    );
}

/// Tasks that do nothing else queue at `vm_committed_as`, at half the rate; those that take
/// their time do not.
#[test]
fn a_time_is_found_at_which_tasks_do_not_queue() {
    let mut target = shaped(Preset::LINUX_4_15, "freebsd-96", [1, 8, 1]);
    target.conditions.disturbed = true;
    let (plan, span) = (plan("mmap1", 8, None), Duration::from_millis(2));
    let queued = target.sample(&plan, span).expect("runs").rate();
    let (fitted, ..) = target.fitted(&plan, span, 1.5 * queued).expect("possible");
    let reached = fitted.sample(&plan, span).expect("runs").rate();
    assert!(
        (reached / queued - 1.5).abs() < 0.03,
        "{reached} of {queued}"
    );
}

#[test]
fn interrupts_and_the_bandwidth_of_memory_are_causes() {
    let mut target = four_cpus(Preset::SCALEVM);
    let interrupts = target.profile.with_broadcast(0.0);
    target.profile = interrupts.expect("no broadcast");
    let observe = |target: &Simulated, workload, mode| {
        let plan = Plan {
            mode,
            ..plan(workload, 4, None)
        };
        let seen = target.observe(&plan, Duration::from_millis(2));
        seen.expect("runs").attribution
    };
    let flushes = observe(&target, "tlb_flush1", Mode::Threads);
    assert!(
        flushes.interrupts > 0.2 && flushes.memory < 0.1,
        "{flushes:?}"
    );
    let bottleneck = flushes.bottleneck();
    assert!(bottleneck.contains("interrupts"), "{bottleneck}");
    target.profile.memory.zero_socket_gbps = 1.0;
    let zeroes = observe(&target, "page_fault1", Mode::Processes);
    assert!(
        zeroes.memory > 0.5 && zeroes.interrupts < 0.01,
        "{zeroes:?}"
    );
    assert!(zeroes.own < 0.5, "{zeroes:?}");
    let bottleneck = zeroes.bottleneck();
    assert!(bottleneck.contains("bandwidth of memory"), "{bottleneck}");
}

#[test]
fn too_many_tasks_are_refused() {
    let target = four_cpus(Preset::SCALEVM);
    let crowd = plan("mmap1", 4 * 32 + 1, None);
    let refused = target.sample(&crowd, Duration::from_millis(1));
    let why = refused.expect_err("too many").to_string();
    assert!(why.contains("each runs at most 32 tasks"), "{why}");
}

/// A millisecond of an iteration's two calls passes outside of other threads of the process,
/// and at the same time as other processes.
#[test]
fn fitted_time_excludes_other_threads() {
    let span = Duration::from_millis(20);
    for preset in [Preset::LINUX_5_15, Preset::FREEBSD_11, Preset::OPENBSD_7_6] {
        let mut target = shaped(preset, "freebsd-96", [1, 4, 1]);
        target.conditions.change = 500_000.0;
        let rate = |tasks, mode| {
            target
                .sample(
                    &Plan {
                        mode,
                        ..plan("mmap1", tasks, None)
                    },
                    span,
                )
                .map(|one| one.rate())
        };
        let alone = rate(1, Mode::Threads).expect("runs");
        assert!((850.0..1150.0).contains(&alone), "{preset}: {alone}");
        let threads = rate(4, Mode::Threads).expect("runs");
        assert!(threads < 1.2 * alone, "{preset}: {threads} of {alone}");
        let processes = rate(4, Mode::Processes).expect("runs");
        assert!(processes > 3.2 * alone, "{preset}: {processes} of {alone}");
    }
}

/// Its effect on threads that wait for each other is not that on one.
#[test]
fn times_are_fitted_to_tasks_that_wait_for_each_other() {
    let plan = Plan {
        mode: Mode::Threads,
        ..plan("mmap1", 4, None)
    };
    let span = Duration::from_millis(2);
    for preset in [Preset::LINUX_5_15, Preset::FREEBSD_11] {
        let fitted = shaped(preset, "freebsd-96", [1, 4, 1]).fitted(&plan, span, 300_000.0);
        let (fitted, _, time) = fitted.expect("possible");
        let reached = fitted.sample(&plan, span).expect("runs").rate();
        assert!((reached / 3e5 - 1.0).abs() < 0.01, "{preset}: {reached}");
        assert!((100.0..2000.0).contains(&time), "{preset}: {time}");
    }
}
