//! S21: the lateness of a player while a kernel is built (case study 003: "make -j17 and watch a HD
//! video").

use super::{Aim, Effort, Lab, Outcome, Probe, Row, System, Work};
use baselines::Preset;
use bench::{Failure, Lateness};
use sim::profile::MachineProfile;

pub const SYSTEM: System = System {
    name: "S21",
    about: "a smooth desktop: a film at 60 Hz during a build by 17 processes",
    machines: &["arm64-16"],
    rows,
    beyond: &[],
};

const LOCKED: Probe = film(Preset::OPENBSD_BIGLOCK);
const UNLOCKED: Probe = film(Preset::OPENBSD_UNLOCKED);
const OURS: Probe = film(Preset::SCALEVM);

const SMOOTH: &str = "case study 003: \"it is now possible to do 'make -j17' and watch a HD video \
                      at the same time\": no frame is dropped";
const BETTER: &str = "case study 003: unlocking faults \"improve[s] the overall latency of mixed \
                      userland workload\"";

const fn film(preset: Preset) -> Probe {
    Probe::new("film", preset, 16, play).of(18).once()
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let dropped = |what: &str, probe| {
        let row = Row::new(lab, what, Aim::AtMost(0.0, SMOOTH), |world| {
            world.each(probe, |outcome| outcome.other("dropped"))
        })?;
        let late = lab.first(probe).map(said).unwrap_or_default();
        Some(row.note(late))
    };
    let rows = [
        Row::new(
            lab,
            "99th of 100 frames late, big lock over faults unlocked",
            Aim::AtLeast(1.2, BETTER),
            |world| world.ratio(LOCKED, UNLOCKED),
        )
        .map(|row| row.note(lab.first(LOCKED).map(said).unwrap_or_default())),
        dropped("frames dropped, faults unlocked", UNLOCKED),
        dropped("frames dropped, scalevm", OURS),
    ];
    Ok(rows.into_iter().flatten().collect())
}

/// The lateness of frames, in a sentence.
fn said(outcome: &Outcome) -> String {
    let ms = |name| 1e3 * outcome.other(name).unwrap_or(0.0);
    format!(
        "late by {:.2} ms in the middle, {:.2} ms the 99th of 100, {:.2} ms at worst; {} of {} \
         dropped",
        ms("median"),
        1e3 * outcome.value,
        ms("worst"),
        outcome.other("dropped").unwrap_or(0.0),
        outcome.other("frames").unwrap_or(0.0),
    )
}

/// Measures the lateness, in seconds, that only one frame of a hundred exceeds.
fn play(
    probe: &Probe,
    machine: &MachineProfile,
    seed: u64,
    effort: &Effort,
) -> Result<Outcome, Failure> {
    // `scalevm latency` plays 120; a frame takes about a second to simulate.
    let frames = match effort.seeds {
        1 => 6,
        _ => 30,
    };
    let (target, plan) = Work::processes("build", probe.preset, probe.size).on(machine, seed)?;
    let late = Lateness::watch(&target, &plan, frames)?;
    Ok(Outcome::of(late.most.as_secs_f64())
        .with("median", late.median.as_secs_f64())
        .with("worst", late.worst.as_secs_f64())
        .with("dropped", late.dropped as f64)
        .with("frames", late.frames as f64))
}
