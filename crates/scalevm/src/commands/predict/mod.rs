//! `scalevm predict`: published curves, or the user's own, predicted.

mod measured;

use crate::cli::{Half, PredictArgs};
use crate::output::format;
use crate::output::prediction::{self, Predicted};
use crate::output::progress::Progress;
use bench::{Failure, interrupt};
use stats::Exit;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use studies::predict::{Effort, Mapping, Setup, is_held_back};
use studies::published::{self, Curve};

/// Predicts, compares and shows.
pub fn run(args: &PredictArgs) -> Result<u8, Failure> {
    format::choose(args.format.format);
    let bad = |error: published::Error| Failure::Unavailable(error.to_string());
    let curves;
    let planned: Vec<(&Curve, Result<Setup, String>)> = match &args.measured {
        Some(path) => {
            let machine = args.machine.profile()?;
            curves = measured::curves(path, machine.cpus())?;
            let preset = args.vm.expect("required with it");
            let plan = |curve| Setup::with(curve, preset, machine.clone());
            curves.iter().map(|curve| (curve, plan(curve))).collect()
        }
        None if args.machine.is_chosen() => {
            let reason =
                "the machine can be chosen only with --measured; published curves name their own";
            return Err(Failure::Unavailable(reason.into()));
        }
        None => {
            curves = published::all().map_err(bad)?;
            let mapping = Mapping::built_in().map_err(bad)?;
            let chosen = chosen(&curves, args)?.into_iter();
            chosen
                .map(|curve| (curve, Setup::of(curve, &mapping)))
                .collect()
        }
    };
    let (mut setups, mut left_out) = (Vec::new(), Vec::new());
    for (curve, setup) in planned {
        match setup {
            Ok(setup) => setups.push(setup),
            Err(why) => left_out.push((curve, why)),
        }
    }
    if args.list {
        prediction::list(&setups, &left_out, args.json);
        return Ok(0);
    }
    super::prepare()?;
    let all = predict(setups, args);
    let predicted: Vec<Predicted> = all.into_iter().collect::<Result<_, _>>()?;
    if args.json {
        prediction::print_json(&predicted, &left_out, args.unscored)
    } else {
        prediction::print(&predicted, &left_out, args.unscored)
    }
    let misses = predicted.iter().any(|one| one.holds() == Some(false));
    Ok(match super::finished() {
        0 if misses && !args.unscored => Exit::Regressed.code(),
        code => code,
    })
}

/// The curves that are asked for, in the order of the files.
fn chosen<'a>(curves: &'a [Curve], args: &PredictArgs) -> Result<Vec<&'a Curve>, Failure> {
    let is = |curve: &Curve, name: &String| curve.file() == name || curve.id == *name;
    let unknown = args
        .which
        .iter()
        .find(|name| !curves.iter().any(|curve| is(curve, name)));
    if let Some(name) = unknown {
        return Err(Failure::Unavailable(format!(
            "unknown source or curve {name}; see docs/published.md or `scalevm predict --list`"
        )));
    }
    let asked = |curve: &&Curve| {
        let half = if is_held_back(curve.file()) {
            Half::HeldBack
        } else {
            Half::Open
        };
        (args.which.is_empty() || args.which.iter().any(|name| is(curve, name)))
            && args.half.is_none_or(|wanted| wanted == half)
    };
    Ok(curves.iter().filter(asked).collect())
}

/// Does all runs, several at the same time, since none depends on another. What an interrupt leaves
/// undone is left out.
fn predict<'a>(setups: Vec<Setup<'a>>, args: &PredictArgs) -> Vec<Result<Predicted<'a>, Failure>> {
    let first = args.machine.first_seed();
    let effort = Effort {
        counts: args.counts as usize,
        seeds: first..first.saturating_add(args.seeds.into()),
    };
    let steps = setups.iter().map(|setup| setup.steps(&effort)).sum();
    let progress = Progress::new(steps, "points");
    let threads = thread::available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS));
    let slots: Vec<_> = setups.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        // Relaxed: only that no two get the same number matters.
        while let Some((setup, slot)) = {
            let index = next.fetch_add(1, Relaxed);
            setups.get(index).zip(slots.get(index))
        } {
            if interrupt::pending().is_some() {
                return;
            }
            let outcome = setup.predict(&effort, &progress);
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        }
    };
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    progress.finish();
    let outcomes = slots
        .into_iter()
        .map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    let done = setups.into_iter().zip(outcomes);
    done.filter_map(|(setup, outcome)| match outcome? {
        Err(Failure::Interrupted(_)) => None,
        outcome => Some(outcome.map(|prediction| Predicted::of(setup, prediction))),
    })
    .collect()
}

/// Threads of this computer that simulate: each holds the memory of a machine, of which 128
/// processes touch 6 GB.
const MOST_THREADS: usize = 4;
