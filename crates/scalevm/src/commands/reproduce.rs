//! `scalevm reproduce`: the seeds' experiments on simulated machines.

use crate::cli::{ReproduceArgs, SimArgs};
use crate::harness::Failure;
use crate::output::progress::Progress;
use crate::output::reproduction;
use crate::reproduce::{Effort, Lab, Point, Row, SYSTEMS, System, Verdict, find};
use sim::profile::Profile;
use stats::Exit;

/// Measures and shows; whether all holds is the exit code.
pub fn run(args: &ReproduceArgs) -> Result<u8, Failure> {
    let systems = chosen(&args.systems);
    let mut benches = benches(&systems, &args.sim, effort(args))?;
    super::prepare()?;
    if !measure(&mut benches)? {
        return Ok(super::finished());
    }
    let (mut rows, mut misses) = (0, 0);
    for system in systems {
        for bench in benches.iter().filter(|bench| bench.has(system)) {
            let found = (system.rows)(&bench.lab)?;
            misses += found.iter().filter(|row| missed(row)).count();
            rows += found.len();
            match args.json {
                true => reproduction::print_json(system, &bench.lab, &found),
                false => reproduction::print(system, &bench.lab, &found),
            }
        }
    }
    if rows == 0 {
        let why = "the machine has too few CPUs for any figure of the seeds";
        return Err(Failure::Unavailable(why.into()));
    }
    if !args.json {
        println!("\n{} of {rows} hold", rows - misses);
    }
    Ok(match (super::finished(), misses) {
        (0, 0) => 0,
        (0, _) => Exit::Regressed.code(),
        (interrupted, _) => interrupted,
    })
}

/// A machine, and the systems that are tried on it.
struct Bench {
    lab: Lab,
    systems: Vec<&'static System>,
}

impl Bench {
    fn has(&self, system: &System) -> bool {
        self.systems.iter().any(|other| other.name == system.name)
    }

    fn points(&self) -> Vec<Point> {
        let machine = self.lab.machine();
        let systems = self.systems.iter();
        systems
            .flat_map(|system| (system.points)(machine))
            .collect()
    }
}

fn missed(row: &Row) -> bool {
    row.verdict() != Verdict::Holds
}

/// The systems asked for, each once, in the order of the list.
fn chosen(asked: &[&'static System]) -> Vec<&'static System> {
    let asked = |name: &str| asked.is_empty() || asked.iter().any(|one| one.name == name);
    let names = SYSTEMS.iter().map(|system| system.name);
    names.filter(|&name| asked(name)).filter_map(find).collect()
}

fn effort(args: &ReproduceArgs) -> Effort {
    let seeds = |usual| args.sim.seeds.map_or(usual, u64::from);
    let effort = match args.quick {
        true => Effort::quick(seeds(1)),
        false => Effort::full(seeds(5)),
    };
    Effort {
        first: args.sim.seed,
        ..effort
    }
}

/// The machines: the one asked for, or those the systems name.
fn benches(
    systems: &[&'static System],
    sim: &SimArgs,
    effort: Effort,
) -> Result<Vec<Bench>, Failure> {
    let lab = |machine: Profile| Lab::new(machine, effort);
    if sim.is_chosen() {
        let (lab, systems) = (lab(sim.profile()?), systems.to_vec());
        return Ok(vec![Bench { lab, systems }]);
    }
    let mut benches: Vec<Bench> = Vec::new();
    for &system in systems {
        for name in system.machines {
            let known = benches
                .iter_mut()
                .find(|bench| bench.lab.machine().name == *name);
            if let Some(bench) = known {
                bench.systems.push(system);
                continue;
            }
            let machine = Profile::named(name);
            let machine = machine.map_err(|error| Failure::Unavailable(error.to_string()))?;
            benches.push(Bench {
                lab: lab(machine),
                systems: vec![system],
            });
        }
    }
    Ok(benches)
}

/// Does all runs; `false` if the user interrupts.
fn measure(benches: &mut [Bench]) -> Result<bool, Failure> {
    let runs = benches
        .iter()
        .map(|bench| bench.lab.runs(&bench.points()))
        .sum();
    let progress = Progress::new(runs, "runs");
    let mut whole = true;
    for bench in benches {
        let points = bench.points();
        whole = whole && bench.lab.measure(&points, &progress)?;
    }
    progress.finish();
    Ok(whole)
}
