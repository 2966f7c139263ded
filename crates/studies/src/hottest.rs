//! S7: which function the flame graph shows as the hottest (case study 000's two).

use super::{Aim, Effort, Lab, Outcome, Probe, Row, System, Unit, Work};
use baselines::Preset;
use bench::Failure;
use bench::profiling::simulated;
use profile::Stacks;
use sim::profile::MachineProfile;

pub const SYSTEM: System = System {
    name: "S7",
    about: "samples of busy time with their stacks: the hot functions of mmap1 by 96 processes",
    machines: &["freebsd-96"],
    rows,
    beyond: &[],
};

const BEFORE: Probe = graph(Preset::FREEBSD_DI);
const AFTER: Probe = graph(Preset::FREEBSD_EPOCH);

const HALF: f64 = 0.5;
const MUNMAP: &str = "case study 000: \"we're actually rate limited by munmap as opposed to mmap \
     and all of our time is being spent in pmap_remove()\"; half at least";
const DI: &str = "case study 000: \"every call to pmap_remove() is globally serialized on the \
                  invl_gen_mtx mutex\"; half at least";
const SWAP: &str =
    "case study 000: \"swap reservation accounting is now the bottleneck\"; half at least";

const fn graph(preset: Preset) -> Probe {
    Probe::new("busy stacks", preset, 96, run).once()
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let shares = [
        (
            BEFORE,
            "munmap",
            "delayed invalidation: below munmap",
            MUNMAP,
        ),
        (
            BEFORE,
            "di",
            "delayed invalidation: below its start and finish",
            DI,
        ),
        (AFTER, "swap", "epochs: below swap reservation", SWAP),
    ];
    let row = |(probe, name, what, quote)| {
        let aim = Aim::Words {
            quote,
            low: HALF,
            high: 1.0,
        };
        let row = Row::new(lab, what, aim, |world| {
            world.each(probe, |outcome: &Outcome| outcome.other(name))
        })?;
        Some(row.unit(Unit::Share))
    };
    Ok(shares.into_iter().filter_map(row).collect())
}

/// Seconds of CPU time in stacks, and the parts of it below the functions that the case study
/// names.
fn run(
    probe: &Probe,
    machine: &MachineProfile,
    seed: u64,
    effort: &Effort,
) -> Result<Outcome, Failure> {
    let work = Work::processes("mmap1", probe.preset, probe.size);
    let (target, plan) = work.on(machine, seed)?;
    let busy = simulated::of(&target, &plan, effort.span(probe.preset))?.busy;
    Ok(Outcome::of(busy.total())
        .with("munmap", below(&busy, "vm::space::unmap::"))
        .with("di", below(&busy, "baselines::freebsd::di::"))
        .with("swap", below(&busy, "baselines::freebsd::swap::")))
}

/// The part of the time below functions whose names begin with `prefix`.
fn below(busy: &Stacks, prefix: &str) -> f64 {
    let is_below = |stack: &str| stack.split(';').any(|frame| frame.starts_with(prefix));
    let stacks = busy.iter().filter(|(stack, _)| is_below(stack));
    let seconds: f64 = stacks.map(|(_, seconds)| seconds).sum();
    seconds / busy.total().max(f64::MIN_POSITIVE)
}
