//! `scalevm check`: checks of the VM.

use crate::cli::{Check, CheckArgs, ConflictsArgs, FuzzArgs, ModelArgs, RacesArgs, SequencesArgs};
use crate::output::checks::races::Row;
use crate::output::checks::{self as output, sequences::Report};
use crate::output::progress::Progress;
use baselines::Preset;
use bench::simulated::AT_ONCE;
use bench::{Failure, Workers, interrupt};
use checks::Ours;
use checks::conflicts::{self, Examined, Pair, Results, Taken};
use checks::races;
use checks::sequences::{self, Options, Watch};
use oracle::check::{Divergence, Played};
use oracle::{Broken, Linux, Step, System, text};
use stats::InputError;
use std::path::Path;
use std::time::Duration;
use std::{fs, mem, process, thread};

/// The longest time that a check may take to end once a signal asks for it.
const GRACE: Duration = Duration::from_secs(2);
/// The time between two checks for a signal.
const LOOK: Duration = Duration::from_millis(100);

/// Seeds of each scenario, and of each planted bug, if nothing is said.
const SEEDS: u64 = 200;
const SEEDS_PLANTED: u64 = 1000;

/// Runs the requested checks. The exit code: 0 if nothing is broken, or every requested planted bug
/// is found; else 1.
pub fn run(args: &CheckArgs) -> Result<u8, Failure> {
    super::prepare()?;
    thread::spawn(end_when_asked);
    let good = match &args.what {
        Check::Conflicts(args) => conflicts(args)?,
        Check::Locks(args) => locks(args)?,
        Check::Races(args) => races(args),
        Check::Fuzz(args) => fuzz(args)?,
        Check::Model(args) => model(args)?,
        Check::Oracle(args) => oracle(args)?,
    };
    Ok(match super::finished() {
        0 => u8::from(!good),
        interrupted => interrupted,
    })
}

/// Ends the command soon after a signal, even if a check hangs.
fn end_when_asked() {
    loop {
        thread::sleep(LOOK);
        if let Some(signal) = interrupt::pending() {
            thread::sleep(GRACE);
            process::exit(128 + i32::from(signal));
        }
    }
}

/// Returns true if the default VM has the conflicts that are known, and no other.
fn conflicts(args: &ConflictsArgs) -> Result<bool, Failure> {
    let mut presets = match args.vm.as_slice() {
        [] => Preset::ALL.to_vec(),
        named => named.to_vec(),
    };
    if args.vm.is_empty() {
        presets.sort_by_key(|&preset| preset != Preset::SCALEVM);
    }
    let pairs = Pair::all();
    let points = presets
        .iter()
        .flat_map(|&preset| pairs.iter().map(move |&pair| (preset, pair)));
    let progress = Progress::new((presets.len() * pairs.len()) as u64, "pairs");
    let run = |(preset, pair): (Preset, Pair)| {
        progress.point(preset.name);
        let conflicts = conflicts::conflicts_of(preset, &pair);
        progress.step();
        conflicts.map_err(Failure::start("simulated machine"))
    };
    let mut good = true;
    let mut examined = Vec::new();
    Workers::here(AT_ONCE).run(points, run, |(preset, pair), conflicts| {
        let conflicts = conflicts?;
        examined.push(Examined { pair, conflicts });
        if examined.len() == pairs.len() {
            let results = Results {
                preset,
                pairs: mem::take(&mut examined),
            };
            let in_full = preset == Preset::SCALEVM || args.vm.contains(&preset);
            progress.aside(|| output::conflicts::print(&results, args.json, in_full));
            good &= results.is_as_known();
        }
        Ok::<_, Failure>(())
    })?;
    progress.finish();
    Ok(good)
}

/// Shows what operations take; nothing can be wrong with that.
fn locks(args: &ConflictsArgs) -> Result<bool, Failure> {
    let presets = match args.vm.as_slice() {
        [] => Preset::ALL.to_vec(),
        named => named.to_vec(),
    };
    let operations = Taken::OPERATIONS;
    let progress = Progress::new((presets.len() * operations.len()) as u64, "operations");
    for preset in presets {
        progress.point(preset.name);
        let mut rows = Vec::new();
        for operation in operations {
            let taken = Taken::by(preset, operation);
            rows.push(taken.map_err(Failure::start("simulated machine"))?);
            progress.step();
            interrupt::check()?;
        }
        progress.aside(|| output::taken::print(preset, &rows, args.json));
    }
    progress.finish();
    Ok(true)
}

/// Returns true if no scenario has failed, or every planted bug was found.
fn races(args: &RacesArgs) -> bool {
    let (subjects, usual) = match &args.planted {
        Some(bug) => (races::planted(bug), SEEDS_PLANTED),
        None => (races::scenarios(&args.only), SEEDS),
    };
    let seeds = match args.seed {
        Some(seed) => seed..seed + 1,
        None => args.from..args.from + args.seeds.unwrap_or(usual),
    };
    let total = (seeds.end - seeds.start) * subjects.len() as u64;
    let progress = Progress::new(total, "runs");
    let mut report = output::races::Report::new(args.json, args.planted.is_some());
    for subject in subjects {
        let name = &subject.scenario.name;
        progress.point(name);
        let found = races::search(&subject.scenario, seeds.clone(), &|| progress.step());
        let about = subject.about;
        progress.aside(|| report.row(&Row { name, about, found }));
        if interrupt::pending().is_some() {
            break;
        }
    }
    progress.finish();
    report.end()
}

/// Compares the VM, or the planted bugs, with the model.
fn model(args: &ModelArgs) -> Result<bool, Failure> {
    let of = &args.sequences;
    if let Some(bug) = &args.planted {
        return planted(bug, sequences::bugs(), of);
    }
    compare(of, None, &mut [&mut Ours::new(of.tasks.into(), of.limit)])
}

/// Compares the VM with the model while memory is short and things fail, or searches the bugs of
/// careless systems.
fn fuzz(args: &FuzzArgs) -> Result<bool, Failure> {
    let of = &args.sequences;
    if let Some(neglect) = &args.planted {
        return planted(neglect, sequences::careless(), of);
    }
    let mut ours = Ours::scarce(of.tasks.into(), of.limit);
    compare(of, args.seconds, &mut [&mut ours])
}

/// Compares the VM with the kernel of this computer.
fn oracle(args: &SequencesArgs) -> Result<bool, Failure> {
    // First, while this process is small.
    let mut linux = Linux::new().map_err(broken)?;
    let mut ours = Ours::new(args.tasks.into(), args.limit);
    compare(args, None, &mut [&mut linux, &mut ours])
}

/// A report and the bar below it.
struct Shown {
    report: Report,
    progress: Progress,
}

impl Watch for Shown {
    fn played(&mut self, played: Played) {
        self.report.played(played);
        self.progress.at(self.report.compared());
    }

    fn passing(&mut self, seed: u64, found: &Divergence) {
        self.progress.aside(|| self.report.passing(seed, found));
    }
}

/// Compares for the requested number of operations, or `seconds`. Returns true if nothing differs.
fn compare(
    args: &SequencesArgs,
    seconds: Option<u64>,
    systems: &mut [&mut dyn System],
) -> Result<bool, Failure> {
    let mut report = Report::new(args.json, systems);
    let found = match &args.replay {
        Some(file) => match sequences::replay(&read(file)?, systems).map_err(broken)? {
            Ok(played) => {
                report.played(played);
                None
            }
            Err(found) => Some((None, found)),
        },
        None => {
            let options = Options {
                first: args.seed.unwrap_or(0),
                steps: args.steps,
                seconds,
            };
            let progress = Progress::new(options.wanted(), "operations");
            let mut shown = Shown { report, progress };
            let found = sequences::search(&options, systems, &mut shown);
            shown.progress.finish();
            report = shown.report;
            let found = found.map_err(broken)?;
            found.map(|(seed, found)| (Some(seed), found))
        }
    };
    if let Some((seed, found)) = &found {
        report.divergence(*seed, found);
    }
    report.end(found.is_some());
    Ok(found.is_none())
}

fn read(file: &Path) -> Result<Vec<Step>, Failure> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).map_err(|source| InputError::Unreadable {
        file: name.clone(),
        source,
    })?;
    text::parse(&text).map_err(|error| Failure::Unavailable(format!("{name}: {error}")))
}

fn broken(error: Broken) -> Failure {
    Failure::Broken(Box::new(error))
}

/// Searches the requested `systems` for their bugs. Returns true if all are found.
fn planted(
    asked: &str,
    systems: impl Iterator<Item = Box<dyn System>>,
    args: &SequencesArgs,
) -> Result<bool, Failure> {
    let (mut searched, mut found) = (0, 0);
    for mut planted in systems.filter(|system| asked == "all" || system.name() == asked) {
        let first = args.seed.unwrap_or(0);
        let outcome = sequences::search_planted(&mut *planted, first).map_err(broken)?;
        searched += 1;
        found += usize::from(outcome.is_some());
        output::sequences::planted(args.json, planted.name(), outcome.as_ref());
        if interrupt::pending().is_some() {
            break;
        }
    }
    output::sequences::planted_summary(args.json, searched, found);
    Ok(found == searched)
}
