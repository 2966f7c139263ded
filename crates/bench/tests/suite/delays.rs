//! Delays say what waits cost: as much as a simulated machine gains without the lock.

use baselines::Preset;
use bench::os::Os;
use bench::simulated::{Cause, Simulated};
use bench::tasks::Affinity;
use bench::{Delayed, Delays, Failure, Mode, Plan, System, Target};
use sim::profile::MachineProfile;
use std::time::Duration;

fn plan(workload: &str, tasks: usize, mode: Mode) -> Plan {
    let workload = workloads::find(workload).expect("a workload");
    Plan::of(workload.into(), tasks, mode, None)
}

fn ask(system: &System, plan: Plan) -> Result<Delayed, Failure> {
    let question = Delays {
        system,
        plan,
        span: Duration::from_micros(500),
        rounds: 3,
    };
    question.ask(|_, _| Box::new(super::Quiet))
}

fn simulated(preset: Preset, without: &[Cause]) -> Simulated {
    let machine = MachineProfile::named("freebsd-96").expect("a machine");
    Simulated {
        without: without.to_vec(),
        ..Simulated::new(preset, machine, 1)
    }
}

/// Delays say of a system what it gains without the first of its causes, a lock that tasks wait
/// for, and of the system without all of them that nobody waits any more.
fn check(preset: Preset, plan: Plan, causes: &[&str]) {
    let causes: Result<Vec<Cause>, _> = causes.iter().map(|text| text.parse()).collect();
    let causes = causes.expect("causes");
    let counts = [0, 1, causes.len()];
    let [with, without, rid] = counts.map(|count| simulated(preset, &causes[..count]));
    let rate = |one: &Simulated| {
        let window = one.sample(&plan, Duration::from_millis(1));
        window.expect("runs").rate()
    };
    let said = |one: &Simulated| {
        let answer = ask(&System::Sim(one.clone().into()), plan).expect("runs");
        answer.gain().expect("simulated rates are clear").median
    };
    let (gain, waits, left) = (rate(&without) / rate(&with), said(&with), said(&rid));
    let seen = format!(
        "{:?}: {gain:.3}, by delays {waits:.3} and {left:.3}",
        causes[0]
    );
    assert!((0.95..1.15).contains(&(waits / gain)), "{seen}");
    assert!((0.95..1.1).contains(&left), "{seen}");
}

#[test]
fn delays_find_what_is_gained_without_the_lock_that_tasks_wait_for() {
    let faults = plan("page_fault1", 24, Mode::Threads);
    let rest = ["line mmap_lock", "memory", "lock lru_lock"];
    check(
        Preset::LINUX_5_15,
        faults,
        &[&["lock mmap_lock"][..], &rest].concat(),
    );
    let mappings = plan("mmap1", 8, Mode::Processes);
    let causes = ["lock KERNEL_LOCK", "line KERNEL_LOCK's depths"];
    check(Preset::OPENBSD_BIGLOCK, mappings, &causes);
}

/// Tasks that never meet wait for nobody, delayed or not.
#[test]
fn delays_find_nothing_where_nobody_waits() {
    let system = System::Sim(simulated(Preset::SCALEVM, &[]).into());
    let answer = ask(&system, plan("mmap1", 8, Mode::Processes)).expect("runs");
    let gain = answer.gain().expect("clear");
    assert!((0.98..1.05).contains(&gain.median), "{gain:?}");
    assert!(answer.hidden(1).abs() < 0.05, "{:.3}", answer.hidden(1));
    let alone = answer.alone() / answer.response(0);
    assert!((0.9..1.05).contains(&alone), "{alone:.3}");
}

#[test]
fn delays_refuse_what_they_say_nothing_about() {
    let refused = |system: &System, plan| match ask(system, plan) {
        Err(Failure::Unavailable(why)) => why,
        _ => panic!("not refused"),
    };
    let system = System::Sim(simulated(Preset::SCALEVM, &[]).into());
    let alone = refused(&system, plan("mmap1", 1, Mode::Threads));
    assert!(alone.contains("waits for nobody"), "{alone}");
    let crowded = refused(&system, plan("mmap1", 97, Mode::Threads));
    assert!(crowded.contains("97 tasks on 96 CPUs"), "{crowded}");
}

/// A task of this computer's kernel takes a delay's time longer for an operation, which is not the
/// operation's.
#[test]
fn tasks_on_the_kernel_are_delayed() {
    let os = Os {
        affinity: Affinity::None,
    };
    for mode in Mode::BOTH {
        let mut running = os.start(&plan("mmap1", 1, mode)).expect("starts");
        assert!(running.delay(Duration::from_millis(1)));
        let count = |running: &dyn bench::Running| {
            let mut counts = [0];
            running.counts(&mut counts);
            counts[0]
        };
        let (before, timed) = (count(&*running), running.timed());
        let began = running.now();
        running.advance(Duration::from_millis(300));
        let passed = (running.now() - began).as_millis() as u64;
        let (done, timed) = (count(&*running) - before, running.timed() - timed);
        // Random delays: a hundred of them last 100 ms give or take 6.
        assert!(
            done > 0 && done <= passed * 5 / 4 + 10,
            "{done} in {passed} ms"
        );
        assert!(timed.operations.abs_diff(done) <= 1);
        assert!(
            timed.time < 1_000_000 * passed / 2,
            "{} ns of {passed} ms",
            timed.time
        );
        running.stop().expect("at work");
    }
}
