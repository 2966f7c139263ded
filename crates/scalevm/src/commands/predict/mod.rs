//! `scalevm predict`: published curves, or the user's own, predicted.

mod measured;

use crate::cli::{Half, PredictArgs};
use crate::output::format;
use crate::output::prediction::{LeftOut, Predicted, Shown};
use crate::output::progress::Progress;
use bench::simulated::AT_ONCE_WHOLE;
use bench::{Failure, Workers};
use measured::Measured;
use stats::Exit;
use std::convert::Infallible;
use studies::predict::{Effort, Mapping, Setup, is_held_back};
use studies::published::{self, Curve};

/// Predicts, compares and shows.
pub fn run(args: &PredictArgs) -> Result<u8, Failure> {
    format::choose(args.format.format);
    let bad = |error: published::Error| Failure::Unavailable(error.to_string());
    let (measured, curves);
    let planned: Vec<(&Curve, Result<Setup, String>)> = match &args.measured {
        Some(path) => {
            measured = Measured::read(path, args)?;
            let plan = |curve| (curve, measured.setup(curve, args));
            measured.curves.iter().map(plan).collect()
        }
        None if args.machine.is_chosen() => {
            let reason =
                "the machine can be chosen only with --measured; published curves name their own";
            return Err(Failure::Unavailable(reason.into()));
        }
        None => {
            curves = published::all().map_err(bad)?;
            let mapping = Mapping::built_in().map_err(bad)?;
            let plan = |curve| (curve, Setup::of(curve, &mapping));
            chosen(&curves, args)?.into_iter().map(plan).collect()
        }
    };
    let (mut setups, mut left_out) = (Vec::new(), Vec::new());
    for (curve, setup) in planned {
        match setup {
            Ok(setup) => setups.push(setup),
            Err(why) => left_out.push((curve, why)),
        }
    }
    let shown = Shown {
        json: args.json,
        unscored: args.unscored,
        own: args.measured.is_some(),
    };
    if args.list {
        shown.list(&setups, &left_out);
        return Ok(0);
    }
    super::prepare()?;
    let (predicted, failed) = predict(&setups, args);
    left_out.extend(failed);
    shown.print(&predicted, &left_out);
    let misses = predicted.iter().any(|one| one.holds() == Some(false));
    Ok(match super::finished() {
        0 if misses && !args.unscored => Exit::Regressed.code(),
        0 if predicted.is_empty() => Exit::Inconclusive.code(),
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

/// Predicts several curves at the same time, since none depends on another. Also returns those that
/// failed, with the reasons. What an interrupt leaves undone is left out.
fn predict<'a>(
    setups: &'a [Setup<'a>],
    args: &PredictArgs,
) -> (Vec<Predicted<'a>>, Vec<LeftOut<'a>>) {
    let first = args.machine.first_seed();
    let effort = Effort {
        counts: args.counts as usize,
        seeds: first..first.saturating_add(args.seeds.into()),
    };
    let steps = setups.iter().map(|setup| setup.steps(&effort)).sum();
    let progress = Progress::new(steps, "points");
    let (mut predicted, mut failed) = (Vec::new(), Vec::new());
    let run = |setup: &Setup| setup.predict(&effort, &progress);
    let ended = Workers::here(AT_ONCE_WHOLE).run(setups, run, |setup, prediction| {
        match prediction {
            Ok(prediction) => predicted.push(Predicted::of(setup, prediction)),
            Err(Failure::Interrupted(_)) => {}
            Err(failure) => failed.push((setup.curve, super::explained(&failure))),
        }
        Ok::<_, Infallible>(())
    });
    progress.finish();
    let Ok(()) = ended;
    (predicted, failed)
}
