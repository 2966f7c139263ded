//! S20: a fork-heavy mail server, exim of MOSBENCH (case study 004).

use super::{Aim, Beyond, Lab, Outcome, Row, System, Unit, Work};
use baselines::Preset;
use bench::Failure;
use bench::simulated::Band;

pub const SYSTEM: System = System {
    name: "S20",
    about: "a mail server that forks for each message: exim by processes of one family",
    machines: &["opteron-48"],
    rows,
    beyond: &[Beyond {
        after: on(Preset::LINUX_3_0_FIXES),
        why: None,
    }],
};

/// Clients, two for each core: MOSBENCH's own configuration of 48 cores.
const CLIENTS: usize = 96;
const CPUS: usize = 48;

/// Messages of each: fewer than a connection's ten, so that a run is short.
const MESSAGES: u64 = 3;

/// A message at one CPU: cycles, of how many in a second; and the part of them in the kernel.
const CYCLES: f64 = 1.156e6;
const FREQUENCY: f64 = 2.4e9;
const IN_KERNEL: f64 = 0.69;
const COST: &str = "Boyd-Wickizer et al., Non-scalable locks are dangerous, 2012: 1.156 M cycles; \
     the workload's computing and the pages that it touches are chosen for it (quoted from memory, \
     not re-checked)";
const SHARE: &str =
    "Boyd-Wickizer et al., An analysis of Linux scalability to many cores, 2010: 69 %; as above";

const RA: &str = "case study 004: 2.6.39+ra-fix 166.7% (+66.7%)";
const RC2: &str = "case study 004: 3.0-rc2(vanilla) 68.0% (-32%)";
const FIXES: &str = "case study 004: 3.0-rc2+fixes 140.3% (+40.3%)";
const ROOT: &str = "case study 004: \"Anon vma chains are the main scalability problem in fork\"";

const WHY: &str = "the clients keep the CPUs busy with 31 thousand messages a second, about the \
     most that the root's lock lets through, so few wait for it. Experiment: with 1 us of \
     computing in place of 48 and a fifth of the pages, the lock takes 17 % of the tasks' time, \
     and 3.0-rc2 does 0.75, the read-ahead fix 1.08 of 2.6.39's messages. What else a message did \
     in that kernel (names, sockets, the log) is missing";
const WHY_RA: &str = "the clients' faults on the program are counted on a Linux that maps 16 pages \
     at each, 2.6.39 one. Experiment: with 16 times as many the read-ahead fix does 1.69 of \
     2.6.39's messages, with 4 times 1.03 (docs/studies/004.md)";

const fn on(preset: Preset) -> Work {
    Work::processes("exim", preset, CLIENTS)
        .over(CPUS)
        .jobs(MESSAGES)
}

/// One message of each client, watched for the clients' waits.
const WATCHED: Work = on(Preset::LINUX_2_6_39_RA).jobs(1).watched();

/// A client alone on its machine.
const ALONE: Work = Work::processes("exim", Preset::LINUX_2_6_39, 1).jobs(20);

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let seed = |figure, quote| Aim::Published {
        figure,
        quote,
        band: Band::SATURATED,
    };
    let over = |preset, figure, quote| {
        let what = format!("{preset} over linux-2.6.39");
        Row::new(lab, what, seed(figure, quote), |world| {
            world.ratio(on(preset), on(Preset::LINUX_2_6_39))
        })
        .map(|row| row.why(WHY))
    };
    let waits = Aim::Words {
        quote: ROOT,
        low: 0.1,
        high: 1.0,
    };
    let fitted = |what, figure, quote, quantity: fn(&Outcome) -> Option<f64>| {
        let aim = Aim::Published {
            figure,
            quote,
            band: Band::FITTED,
        };
        Row::new(lab, what, aim, |world| world.each(ALONE, quantity)).map(Row::check)
    };
    let rows = [
        fitted(
            "linux-2.6.39, one client: messages a second",
            FREQUENCY / CYCLES,
            COST,
            |alone| Some(alone.value),
        ),
        fitted(
            "linux-2.6.39, one client: the part of the time in the kernel",
            IN_KERNEL,
            SHARE,
            |alone| Some(alone.sys()? / (alone.sys()? + alone.user()?)),
        )
        .map(|row| row.unit(Unit::Share)),
        over(Preset::LINUX_2_6_39_RA, 1.667, RA).map(|row| row.why(WHY_RA)),
        over(Preset::LINUX_3_0_RC2, 0.68, RC2),
        over(Preset::LINUX_3_0_FIXES, 1.403, FIXES),
        Row::new(
            lab,
            "linux-2.6.39-ra: the tasks' time that goes in waiting for the root's lock",
            waits,
            |world| world.each(WATCHED, |outcome| outcome.waiting("anon_vma root")),
        )
        .map(|row| row.unit(Unit::Share).why(WHY))
        .map(|row| {
            let said = lab.first(WATCHED).and_then(Outcome::bottleneck);
            said.into_iter().fold(row, Row::note)
        }),
    ];
    Ok(rows.into_iter().flatten().collect())
}
