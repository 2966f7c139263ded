//! `scalevm predict`: published curves, or the user's own, predicted.

mod measured;

use crate::cli::{Half, PredictArgs};
use crate::output::format;
use crate::output::prediction::{self, Predicted};
use crate::output::progress::Progress;
use bench::simulated::AT_ONCE_WHOLE;
use bench::{Failure, Workers};
use stats::Exit;
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
    let predicted = predict(&setups, args)?;
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
            "unknown source or curve {name}; see `scalevm predict --list`"
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

/// Predicts several curves at the same time, since none depends on another. What an interrupt
/// leaves undone is left out.
fn predict<'a>(setups: &'a [Setup<'a>], args: &PredictArgs) -> Result<Vec<Predicted<'a>>, Failure> {
    let first = args.machine.first_seed();
    let effort = Effort {
        counts: args.counts as usize,
        seeds: first..first.saturating_add(args.seeds.into()),
    };
    let steps = setups.iter().map(|setup| setup.steps(&effort)).sum();
    let progress = Progress::new(steps, "points");
    let mut predicted = Vec::new();
    let run = |setup: &Setup| setup.predict(&effort, &progress);
    let ended = Workers::here(AT_ONCE_WHOLE).run(setups, run, |setup, prediction| {
        match prediction {
            Err(Failure::Interrupted(_)) => {}
            prediction => predicted.push(Predicted::of(setup, prediction?)),
        }
        Ok(())
    });
    progress.finish();
    ended.map(|()| predicted)
}
