//! `check conflicts`: do operations that commute share cache lines?
//!
//! Operations commute if neither's result tells in which order they came. Then an
//! implementation exists in which they share no line that one of them writes, and scale
//! (Clements et al., "The scalable commutativity rule", SOSP 2013). For each pair this
//! asks whether ours is one.

mod commute;
mod examine;
mod operation;
mod report;

use crate::cli::ConflictsArgs;
use crate::harness::{Failure, interrupt};
use crate::output::progress::Progress;
use baselines::selected::{Preset, Selected, UnknownPreset};
use commute::Pair;
use examine::{Conflict, examine};
use report::{Report, Result as PairResult};
use vm::{Best, Options};

/// Examines and shows. The exit code: 1 if the default VM has a conflict, else 0.
pub fn run(args: &ConflictsArgs) -> Result<u8, Failure> {
    interrupt::install().map_err(Failure::start("signal handler"))?;
    let unknown = |error: UnknownPreset| Failure::Unavailable(error.to_string());
    let named: Result<Vec<Preset>, _> = args.vm.iter().map(|name| name.parse()).collect();
    let named = named.map_err(unknown)?;
    let presets = if named.is_empty() {
        ours_first()
    } else {
        named.clone()
    };
    let pairs = Pair::all();
    let progress = Progress::new((presets.len() * pairs.len()) as u64, "pairs");
    let mut good = true;
    for preset in presets {
        progress.point(preset.name());
        let in_full = preset == Preset::Scalevm || named.contains(&preset);
        let mut report = Report::new(preset, args.json, in_full);
        for pair in &pairs {
            let conflicts =
                conflicts_of(preset, pair).map_err(Failure::start("simulated machine"))?;
            report.add(PairResult {
                pair: *pair,
                conflicts,
            });
            progress.step();
            if let Some(signal) = interrupt::pending() {
                return Ok(128 + signal);
            }
        }
        progress.aside(|| report.print());
        good &= preset != Preset::Scalevm || report.is_free();
    }
    progress.finish();
    Ok(u8::from(!good))
}

/// All presets, the default first.
fn ours_first() -> Vec<Preset> {
    let mut presets = Preset::ALL.to_vec();
    presets.sort_by_key(|&preset| preset != Preset::Scalevm);
    presets
}

fn conflicts_of(preset: Preset, pair: &Pair) -> std::io::Result<Vec<Conflict>> {
    match preset {
        Preset::Scalevm => examine::<Best>(pair, Options::default()),
        preset => examine::<Selected>(pair, preset.options()),
    }
}
