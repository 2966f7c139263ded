//! S18: 10 GB with a hole of four pages in every eight, one list of anon_vma (case study 004).

mod fragments;

use super::{Aim, Lab, Outcome, Probe, Row, System};
use baselines::Preset;
use bench::Failure;
use fragments::{REGIONS, SPLIT};

pub const SYSTEM: System = System {
    name: "S18",
    about: "fragmented memory: a reverse walk and a superpage's split among many regions",
    machines: &["xeon-4s"],
    rows,
    beyond: &[],
};

/// Numbers of regions; the last is that of 10 GB.
const SIZES: [usize; 3] = [1_024, 32_768, ALL];
const ALL: usize = 327_680;

const MANY: &str = "case study 004: \"a list of up to 327680 vmAs associated with the anon_vma\"";
const DEAR: &str =
    "case study 004: \"Traversing the same anon_vma list then becomes very expensive\"";
const SPLITS: &str = "case study 004: \"`__split_huge_page` … goes through the entire list of vmAs \
                      to locate the vma\"";
const AIM: &str = "aim: a structure whose walk does not grow";

const fn linux(regions: usize) -> Probe {
    look(Preset::LINUX_2_6_39, regions)
}

const fn ours(regions: usize) -> Probe {
    look(Preset::SCALEVM, regions)
}

const fn look(preset: Preset, regions: usize) -> Probe {
    Probe::new("a reverse walk", preset, 1, |probe, machine, seed, _| {
        fragments::look(probe.preset, probe.size, machine, seed)
    })
    .of(regions)
    .once()
}

fn walk(outcome: &Outcome) -> Option<f64> {
    Some(outcome.value)
}

fn split(outcome: &Outcome) -> Option<f64> {
    outcome.other(SPLIT)
}

fn rows(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let words = |quote, low, high| Aim::Words { quote, low, high };
    let exactly = words(MANY, ALL as f64, ALL as f64);
    // The factor by which the regions grow, or half of it: both include a walk's costs other than
    // its list.
    let grows = (SIZES[2] / SIZES[0]) as f64;
    let mut rows = vec![
        // The number of regions that were made.
        Row::new(lab, "regions of 10 GB with holes", exactly, |world| {
            world.each(linux(ALL), |outcome| outcome.other(REGIONS))
        })
        .map(Row::check),
        Row::new(
            lab,
            "linux-2.6.39: a walk among 327,680 regions over one among 1,024",
            words(DEAR, grows / 2.0, 2.0 * grows),
            |world| world.ratio(linux(ALL), linux(SIZES[0])),
        ),
        Row::new(
            lab,
            "linux-2.6.39: a superpage's split among 327,680 regions over one among 1,024",
            words(SPLITS, grows / 4.0, 2.0 * grows),
            |world| world.ratio_of(linux(ALL), linux(SIZES[0]), split),
        ),
    ];
    for (what, quantity) in [
        ("walk", walk as fn(&Outcome) -> _),
        ("superpage's split", split),
    ] {
        let grown = format!("scalevm: a {what} among 327,680 regions over one among 1,024");
        rows.push(Row::new(lab, grown, Aim::AtMost(1.2, AIM), |world| {
            world.ratio_of(ours(ALL), ours(SIZES[0]), quantity)
        }));
        for regions in SIZES {
            let faster = format!("{regions} regions: a {what}, linux-2.6.39 over scalevm");
            let aim = Aim::AtLeast(1.0, AIM);
            let row = Row::new(lab, faster, aim, |world| {
                world.ratio_of(linux(regions), ours(regions), quantity)
            });
            let of = |side: Probe| lab.first(side).and_then(quantity);
            let note = of(linux(regions)).zip(of(ours(regions)));
            let note = note.map(|(theirs, ours)| format!("{theirs:.0} ns and {ours:.0} ns"));
            rows.push(row.map(|row| note.into_iter().fold(row, Row::note)));
        }
    }
    Ok(rows.into_iter().flatten().collect())
}
