//! S5: scalevm's own design, with swap reserved per CPU. The case study leaves it open, so it is
//! compared with the project's own aims.

use super::lab::World;
use super::{Aim, Lab, Row, System, Work};
use baselines::Preset;
use bench::{Failure, Mode};
use sim::profile::MachineProfile;

pub const SYSTEM: System = System {
    name: "S5",
    about: "scalevm, swap reserved per CPU: mmap1 by processes and by threads",
    machines: &["freebsd-96"],
    rows,
    beyond: &[],
};

const MORE: &str =
    "aim: 25 times delayed invalidation; case study 000: \"a topic for another day\"";
const LINEAR: &str = "aim: 0.9 of linear, at the speed each hardware thread has";

/// Numbers of tasks from one to all CPUs.
fn counts(machine: &MachineProfile) -> Vec<usize> {
    let all = machine.cpus();
    let doubling = std::iter::successors(Some(1), |n| Some(2 * n)).take_while(|&n| n < all);
    let half = machine.topology.sockets * machine.topology.cores;
    let mut counts: Vec<usize> = doubling.chain([half, all]).collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

const fn at(mode: Mode, tasks: usize) -> Work {
    Work {
        mode,
        ..Work::processes("mmap1", Preset::SCALEVM, tasks)
    }
}

const fn di(tasks: usize) -> Work {
    Work::processes("mmap1", Preset::FREEBSD_DI, tasks)
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let all = lab.machine().cpus();
    let mut rows = Vec::new();
    let more = format!("{all} processes, over delayed invalidation");
    rows.extend(Row::new(lab, more, Aim::AtLeast(25.0, MORE), |world| {
        world.ratio(at(Mode::Processes, all), di(all))
    }));
    for mode in [Mode::Processes, Mode::Threads] {
        rows.extend(linear(lab, mode));
    }
    Ok(rows)
}

/// The least of all numbers of tasks.
fn linear(lab: &Lab, mode: Mode) -> Option<Row> {
    let machine = lab.machine();
    let all = machine.cpus();
    let what = format!("1 to {all} {}, least part of linear", mode.name());
    let row = Row::new(lab, what, Aim::AtLeast(0.9, LINEAR), |world| {
        let parts: Option<Vec<Vec<f64>>> = counts(machine)
            .into_iter()
            .map(|n| part(world, machine, mode, n))
            .collect();
        let least =
            |a: Vec<f64>, b: Vec<f64>| a.into_iter().zip(b).map(|(a, b)| a.min(b)).collect();
        parts?.into_iter().reduce(least)
    })?;
    let plain = lab.figure(&|world: &_| world.ratio(at(mode, all), at(mode, 1)))?;
    let median = plain.ours.median;
    let (whole, parts) = (median / all as f64, speed(machine, all));
    Some(row.note(format!(
        "{all} at once do {median:.1} times what one does alone: {whole:.2} of {all}; with both \
         threads of each core at work, {all} CPUs have the speed of {parts:.1}"
    )))
}

/// The rate of `tasks` as a part of one task's rate times their CPUs' speed.
fn part(world: &World, machine: &MachineProfile, mode: Mode, tasks: usize) -> Option<Vec<f64>> {
    let ratios = world.ratio(at(mode, tasks), at(mode, 1))?;
    let speed = speed(machine, tasks);
    Some(ratios.into_iter().map(|ratio| ratio / speed).collect())
}

/// The speed of the first `tasks` CPUs together, in CPUs whose core has nothing else to do.
fn speed(machine: &MachineProfile, tasks: usize) -> f64 {
    let cores = machine.topology.sockets * machine.topology.cores;
    let working = |core: usize| (core..tasks).step_by(cores).count();
    let core = |core: usize| match working(core) {
        0 => 0.0,
        1 => 1.0,
        threads => threads as f64 * machine.core.smt,
    };
    (0..cores).map(core).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_threads_share_a_core() {
        let machine = MachineProfile::named("freebsd-96").unwrap();
        assert_eq!(speed(&machine, 1), 1.0);
        assert_eq!(speed(&machine, 48), 48.0);
        assert!((speed(&machine, 49) - 47.0 - 2.0 * machine.core.smt).abs() < 1e-9);
        assert!((speed(&machine, 96) - 96.0 * machine.core.smt).abs() < 1e-9);
        assert_eq!(counts(&machine), [1, 2, 4, 8, 16, 32, 48, 64, 96]);
    }
}
