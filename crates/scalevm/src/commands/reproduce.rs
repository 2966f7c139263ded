//! `scalevm reproduce`: the case studies' experiments on simulated machines.

use crate::cli::ReproduceArgs;
use crate::output::progress::Progress;
use crate::output::{format, reproduction};
use bench::Failure;
use sim::profile::{MachineProfile, ProfileError};
use stats::Exit;
use std::time::Instant;
use studies::{Effort, Lab, Point, Row, SYSTEMS, System, Verdict, beyond, tally};

/// Measures and shows; the exit code is 0 if all holds. A run that fails costs the figures made of
/// it.
pub fn run(args: &ReproduceArgs) -> Result<u8, Failure> {
    format::choose(args.format.format);
    let began = Instant::now();
    let systems = chosen(&args.systems);
    let mut benches = benches(&systems, args, effort(args))?;
    super::prepare()?;
    if !measure(&mut benches)? {
        return Ok(super::finished());
    }
    let mut rows = Vec::new();
    for system in systems {
        for bench in &benches {
            let found = bench.rows(system)?;
            if args.json {
                reproduction::print_json(system, &bench.lab, &found)
            } else {
                reproduction::print(system, &bench.lab, &found)
            }
            rows.extend(found);
        }
    }
    let failed = failed(&benches);
    if rows.is_empty() && failed.is_none() {
        let why = "the machine has too few CPUs for any figure of the case studies";
        return Err(Failure::Unavailable(why.into()));
    }
    if !args.json {
        let took = began.elapsed().as_secs_f64();
        println!("\n{}; {took:.0} s", tally(&rows));
    }
    let misses = rows.iter().any(|row| row.verdict() != Verdict::Holds);
    Ok(match (super::finished(), failed, misses) {
        (0, Some(code), _) => code,
        (0, None, false) => 0,
        (0, None, true) => Exit::Regressed.code(),
        (interrupted, ..) => interrupted,
    })
}

/// Says, once each, why runs failed; returns the exit code, if any did.
fn failed(benches: &[Bench]) -> Option<u8> {
    let mut said: Vec<String> = Vec::new();
    let mut code = None;
    for failure in benches.iter().flat_map(|bench| bench.lab.failures()) {
        let why = failure.to_string();
        if !said.contains(&why) {
            eprintln!("scalevm: {why}");
            said.push(why);
        }
        code.get_or_insert(super::exit_code(failure));
    }
    code
}

/// A machine, and the systems tried on it.
struct Bench {
    lab: Lab,
    systems: Vec<&'static System>,
    /// The numbers of tasks of figures beyond the case studies, and the systems of those figures.
    beyond: (Vec<usize>, Vec<&'static System>),
}

impl Bench {
    fn new(machine: MachineProfile, effort: Effort) -> Self {
        Bench {
            lab: Lab::new(machine, effort),
            systems: Vec::new(),
            beyond: Default::default(),
        }
    }

    /// The runs that are still to be done for all figures.
    fn wanted(&self) -> Result<Vec<Point>, Failure> {
        self.lab.wanted(|_| {
            let mut systems = SYSTEMS.iter();
            systems.try_for_each(|system| self.rows(system).map(drop))
        })
    }

    /// The results for `system`, if it was tried here.
    fn rows(&self, system: &System) -> Result<Vec<Row>, Failure> {
        let is_among = |systems: &[&System]| systems.iter().any(|one| one.name == system.name);
        let mut rows = if is_among(&self.systems) {
            (system.rows)(&self.lab)?
        } else {
            Vec::new()
        };
        let (counts, systems) = &self.beyond;
        if is_among(systems) {
            let beyond = system.beyond.iter();
            rows.extend(beyond.flat_map(|one| one.rows(&self.lab, counts)));
        }
        Ok(rows)
    }
}

/// The requested systems, each once, in the order of the list.
fn chosen(asked: &[&'static System]) -> Vec<&'static System> {
    let asked = |name: &str| asked.is_empty() || asked.iter().any(|one| one.name == name);
    let all = SYSTEMS.iter();
    all.filter(|system| asked(system.name)).collect()
}

fn effort(args: &ReproduceArgs) -> Effort {
    let seeds = |usual| args.sim.seeds.map_or(usual, u64::from);
    let effort = if args.quick {
        Effort::quick(seeds(1))
    } else {
        Effort::full(seeds(5))
    };
    Effort {
        first: args.sim.machine.first_seed(),
        ..effort
    }
}

/// The machines: the requested one, or those that the systems name and those beyond.
fn benches(
    systems: &[&'static System],
    args: &ReproduceArgs,
    effort: Effort,
) -> Result<Vec<Bench>, Failure> {
    let unknown = |error: ProfileError| Failure::Unavailable(error.to_string());
    if args.sim.machine.is_chosen() {
        let bench = Bench::new(args.sim.machine.profile()?, effort);
        let (systems, beyond) = (
            systems.to_vec(),
            (beyond::COUNTS.to_vec(), systems.to_vec()),
        );
        return Ok(vec![Bench {
            systems,
            beyond,
            ..bench
        }]);
    }
    let mut benches: Vec<Bench> = Vec::new();
    for &system in systems {
        for name in system.machines {
            let machine = MachineProfile::named(name).map_err(unknown)?;
            of(&mut benches, machine, effort).systems.push(system);
        }
    }
    let further = systems.iter().filter(|system| !system.beyond.is_empty());
    let further: Vec<&System> = further.copied().collect();
    if further.is_empty() {
        return Ok(benches);
    }
    for (machine, counts) in beyond::machines(args.quick).map_err(unknown)? {
        of(&mut benches, machine, effort).beyond = (counts.to_vec(), further.clone());
    }
    Ok(benches)
}

/// The bench with this machine; there is one afterwards.
fn of(benches: &mut Vec<Bench>, machine: MachineProfile, effort: Effort) -> &mut Bench {
    let is_it = |bench: &Bench| *bench.lab.machine() == machine;
    let index = benches.iter().position(is_it).unwrap_or_else(|| {
        benches.push(Bench::new(machine, effort));
        benches.len() - 1
    });
    &mut benches[index]
}

/// Does all runs. Returns false if the user interrupts.
fn measure(benches: &mut [Bench]) -> Result<bool, Failure> {
    loop {
        let wanted = benches.iter().map(Bench::wanted);
        let wanted: Vec<Vec<Point>> = wanted.collect::<Result<_, _>>()?;
        let runs = benches.iter().zip(&wanted);
        let works = runs.flat_map(|(bench, points)| bench.lab.works(points));
        let works: Vec<u64> = works.collect();
        if works.is_empty() {
            return Ok(true);
        }
        let progress = Progress::weighted(works.len() as u64, "runs", works.iter().sum());
        let mut all = benches.iter_mut().zip(&wanted);
        let whole = all.all(|(bench, points)| bench.lab.measure(points, &progress));
        progress.finish();
        if !whole {
            return Ok(false);
        }
    }
}
