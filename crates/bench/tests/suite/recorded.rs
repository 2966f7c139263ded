//! Recorded programs on all systems.

use baselines::Preset;
use bench::os::Os;
use bench::ours::Ours;
use bench::simulated::{Conditions, Simulated};
use bench::tasks::Affinity;
use bench::{Mode, Plan, Recorded, System};
use recording::{Advice, Birth, Call, Prot, WaitFor, What};
use sim::profile::MachineProfile;

#[path = "../../../recording/tests/support/mod.rs"]
mod support;

use support::{BOTH, PAGE, Program, anonymous, at};

/// All kinds of events: threads that wait for each other's memory, a copy that writes what it has
/// inherited, a program executed, and calls of each kind.
fn everything() -> &'static Recorded {
    let mut program = Program::new();
    program.add(
        0,
        What::Given {
            call: anonymous(0, 16, None),
        },
    );
    program.fault(0, 0, 0, 16);
    let worker = program.thread(0);
    program.add(0, What::Start { thread: worker });
    // The worker's mapping is used by the first thread, and the other way round.
    program
        .map(worker, 1, 8)
        .fault(0, 1, 0, 4)
        .fault(worker, 1, 4, 4);
    program.unmap(0, 1, 2, 3).fault(worker, 1, 6, 1);
    program.call(
        worker,
        Call::Protect {
            at: at(0, 4),
            length: 2 * PAGE,
            prot: Prot::default(),
        },
    );
    program.call(
        worker,
        Call::Protect {
            at: at(0, 4),
            length: 2 * PAGE,
            prot: BOTH,
        },
    );
    program
        .call(worker, anonymous(2, 2, Some(at(0, 8))))
        .fault(worker, 2, 0, 2);
    for advice in [
        Advice::Discard,
        Advice::PopulateWrite,
        Advice::Free,
        Advice::Cold,
    ] {
        program.call(
            0,
            Call::Advise {
                at: at(0, 0),
                length: 4 * PAGE,
                advice,
            },
        );
    }
    program
        .call(
            0,
            Call::Break {
                mapping: 3,
                length: 8 * PAGE,
            },
        )
        .fault(0, 3, 0, 8);
    program.call(
        0,
        Call::Break {
            mapping: 3,
            length: 2 * PAGE,
        },
    );
    program.map(0, 4, 4).fault(0, 4, 0, 4);
    program.call(
        0,
        Call::Remap {
            at: at(4, 0),
            length: 4 * PAGE,
            new_length: 32 * PAGE,
            to: Some(5),
        },
    );
    program.fault(0, 5, 16, 16);
    program.call(
        0,
        Call::Lock {
            at: at(5, 0),
            length: PAGE,
        },
    );
    program.call(
        0,
        Call::Unlock {
            at: at(5, 0),
            length: PAGE,
        },
    );
    program.call(
        0,
        Call::InCore {
            at: at(5, 0),
            length: PAGE,
        },
    );
    let child = program.process(Birth::Forked);
    program.add(
        0,
        What::Fork {
            thread: child,
            borrows: false,
        },
    );
    program.fault(child, 0, 0, 4).fault(0, 0, 0, 4);
    program
        .add(child, What::Exec)
        .map(child, 6, 4)
        .fault(child, 6, 0, 4);
    program
        .add(child, What::Wake { thread: 0 })
        .add(child, What::Exit);
    let on = WaitFor::Child;
    program.add(
        0,
        What::Wait {
            on,
            nanoseconds: 1000,
            by: Some((child, 0)),
        },
    );
    program.add(
        worker,
        What::Wait {
            on: WaitFor::Time,
            nanoseconds: 20_000,
            by: None,
        },
    );
    program
        .add(worker, What::Exit)
        .unmap(0, 5, 0, 32)
        .add(0, What::Exit);
    Recorded::new("program".into(), program.0, None).expect("a role")
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
        System::Sim(Box::new(Simulated {
            preset: Preset::LINUX_6_12,
            profile: MachineProfile::named("freebsd-96").expect("a machine"),
            seed: 1,
            conditions: Conditions::default(),
        })),
    ]
}

#[test]
fn a_program_runs_on_all_systems() {
    let program = everything();
    let left_out = program.left_out();
    assert_eq!((left_out.calls, left_out.faults), (0, 0), "{left_out}");
    for system in systems() {
        for tasks in [1, 3] {
            let passes = 10;
            let count = Some(left_out.of_calls * passes * tasks);
            let plan = Plan::of(program.into(), tasks as usize, Mode::Processes, count);
            let times = system.target().complete(&plan, 0);
            let times = times.unwrap_or_else(|error| panic!("{}: {error}", system.on().name()));
            assert!(times.real.as_nanos() as u64 > passes * 40_000, "{times:?}");
        }
    }
}
