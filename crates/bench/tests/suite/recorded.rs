//! Recorded programs on all systems.

use baselines::Preset;
use bench::os::Os;
use bench::ours::Ours;
use bench::simulated::Simulated;
use bench::tasks::Affinity;
use bench::{Mode, Plan, Recorded, System};
use sim::profile::MachineProfile;

#[path = "../../../recording/tests/support/mod.rs"]
mod support;

use recording::{Birth, Event, Process, Recording, Thread, What};
use support::everything;

/// A program with a monitor that locks its first process's memory after each event.
fn watched() -> Recording {
    let mut program = everything();
    let (monitor, process) = (program.threads.len() as u32, program.processes.len() as u32);
    program.processes.push(Process {
        pid: 1,
        name: "monitor".into(),
        birth: Birth::Foreign,
    });
    program.threads.push(Thread {
        tid: 1,
        process,
        name: "monitor".into(),
    });
    let hold = |event: &Event| Event {
        at: event.at,
        thread: monitor,
        computed: 0,
        what: What::Hold {
            process: 0,
            write: false,
            nanoseconds: 700,
        },
    };
    let events = program.events.into_iter();
    program.events = events
        .flat_map(|event| [event.clone(), hold(&event)])
        .collect();
    program
}

fn systems() -> [System; 3] {
    [
        System::Os(Os {
            affinity: Affinity::None,
        }),
        System::Hosted(Ours {
            preset: Preset::SCALEVM,
            affinity: Affinity::None,
            cpus: None,
        }),
        System::Sim(Box::new(Simulated::new(
            Preset::LINUX_6_12,
            MachineProfile::named("freebsd-96").expect("a machine"),
            1,
        ))),
    ]
}

#[test]
fn a_program_runs_on_all_systems() {
    let program = Recorded::new("program".into(), watched(), None).expect("a role");
    let left_out = program.left_out();
    assert_eq!((left_out.calls, left_out.faults), (0, 0), "{left_out}");
    assert!(left_out.holds < left_out.of_holds / 2, "{left_out}");
    for system in systems() {
        for tasks in [1, 3] {
            let runs = 10;
            let count = Some(runs * tasks);
            let plan = Plan::of(program.into(), tasks as usize, Mode::Processes, count);
            let times = system.target().complete(&plan, 0);
            let times = times.unwrap_or_else(|error| panic!("{}: {error}", system.on().name()));
            assert!(times.real.as_nanos() as u64 > runs * 40_000, "{times:?}");
        }
    }
}
