//! S1: will-it-scale's harness (case study 000's first run).

use super::{Aim, Effort, Lab, Outcome, Probe, Row, System, Work};
use baselines::Preset;
use bench::simulated::Band;
use bench::{Failure, Phase, Sample, Schedule, Watch, measure};
use sim::profile::MachineProfile;

pub const SYSTEM: System = System {
    name: "S1",
    about: "will-it-scale's harness: samples, least and most of tasks, totals, their average",
    machines: &["freebsd-96"],
    rows,
    beyond: &[],
};

/// The totals that case study 000 prints, before and after.
pub const TOTALS: [[f64; 5]; 2] = [
    [
        1_005_918.0,
        1_006_319.0,
        1_009_119.0,
        1_013_143.0,
        1_009_155.0,
    ],
    [
        3_548_585.0,
        3_548_786.0,
        3_552_085.0,
        3_552_502.0,
        3_552_587.0,
    ],
];
/// The least and the most of 96 tasks in each of its first five samples.
const SPREAD: [[f64; 2]; 5] = [
    [7864.0, 13726.0],
    [7876.0, 14460.0],
    [7722.0, 13627.0],
    [7378.0, 14145.0],
    [7615.0, 12599.0],
];

const BEFORE: &str = "case study 000, `-t 96 -s 5`: average:1008730";
const AFTER: &str = "case study 000, epochs, `-t 96 -s 5`: average:3550909";
const SAMPLES: &str = "case study 000: \"I want to get 5 samples\"";
const FAIR: &str = "case study 000, `-t 96`: min:7722 max:13627, the middle of five";
const WHY_FAIR: &str = "a run is 10 ms, the case study's sample a second: the task that has backed \
     off longest may sit all of it out; and which waiter is served next is not predicted \
     (docs/simulator/model.md)";

const DI: Work = Work::processes("mmap1", Preset::FREEBSD_DI, 96);
const HARNESS: Probe = Probe::new(
    "will-it-scale's harness, mmap1",
    Preset::FREEBSD_DI,
    12,
    run,
)
.once();

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let exactly = |figure, quote| Aim::Published {
        figure,
        quote,
        band: Band::EXACT,
    };
    let printed = |totals| outcome(totals).whole_average().unwrap_or(0) as f64;
    let mut rows = vec![
        Row::known(
            "average of the case study's samples",
            exactly(1_008_730.0, BEFORE),
            printed(TOTALS[0]),
        ),
        Row::known(
            "average of its samples with epochs",
            exactly(3_550_909.0, AFTER),
            printed(TOTALS[1]),
        ),
    ];
    let samples = |world: &super::lab::World| world.of(HARNESS);
    let what = "samples of a run, 12 processes";
    let count = Row::new(lab, what, exactly(5.0, SAMPLES), samples);
    rows.extend(count.map(Row::check));
    let what = "samples whose tasks' rates do not make their total";
    let none = Aim::AtMost(0.0, "aim: none");
    let bad = Row::new(lab, what, none, |world| {
        world.each(HARNESS, |outcome| outcome.other("bad"))
    });
    rows.extend(bad.map(Row::check));
    let mut middle = SPREAD.map(|[least, most]| least / most);
    middle.sort_by(f64::total_cmp);
    let fair = Aim::Published {
        figure: middle[2],
        quote: FAIR,
        band: Band::LAYOUT,
    };
    let row = Row::new(
        lab,
        "96 processes, least over most of a task",
        fair,
        |world| {
            world.each(DI, |outcome| {
                Some(outcome.other("least")? / outcome.other("most")?)
            })
        },
    );
    rows.extend(row.map(|row| row.why(WHY_FAIR)));
    Ok(rows)
}

/// The harness's outcome for samples with these totals.
fn outcome(totals: [f64; 5]) -> bench::Outcome {
    let sample = |total| Sample {
        min: 0.0,
        max: total,
        total,
        seconds: 1.0,
        doubt: 0.0,
    };
    bench::Outcome {
        samples: totals.map(sample).to_vec(),
        interrupted: false,
        bottleneck: None,
    }
}

/// Counts the samples that the harness shows, as it shows them.
#[derive(Default)]
struct Seen(Vec<Sample>);

impl Watch for Seen {
    fn phase(&mut self, _: Phase) {
        self.0.clear();
    }

    fn sample(&mut self, _: Phase, _: u32, sample: &Sample) {
        self.0.push(*sample);
    }
}

/// A measurement as case study 000's: how many samples it shows, and how many of them cannot be.
fn run(
    probe: &Probe,
    machine: &MachineProfile,
    seed: u64,
    effort: &Effort,
) -> Result<Outcome, Failure> {
    let work = Work::processes("mmap1", probe.preset, probe.size);
    let (target, plan) = work.on(machine, seed)?;
    let schedule = Schedule {
        warmup: 1,
        samples: 5,
        duration: effort.span(work.preset),
    };
    let mut seen = Seen::default();
    let outcome = measure(&target, &plan, &schedule, &mut seen)?;
    let tasks = probe.size as f64;
    let sound = |sample: &&Sample| {
        let range = tasks * sample.min..=tasks * sample.max;
        range.contains(&sample.total)
    };
    let bad = seen.0.len() - seen.0.iter().filter(sound).count();
    let average = seen.0.iter().map(|sample| sample.total).sum::<f64>() / seen.0.len() as f64;
    let same = outcome
        .average()
        .is_some_and(|ours| (ours / average - 1.0).abs() < 1e-9);
    Ok(Outcome::of(seen.0.len() as f64).with("bad", bad as f64 + f64::from(!same)))
}
