//! The file of what represents published kernels and machines is valid, malformed ones are
//! refused, and no line is idle.

mod refused;

use stats::record::Mode;
use studies::predict::{Effort, Mapping, Setup, StandIn, is_held_back};
use studies::published::all;

/// A file that is as it should be.
const GOOD: &str = r#"
stand_ins = [
  { kernels = ["Linux 4"], runs = ["mmap1 threads"], preset = "linux-3.0-fixes" },
  { kernels = ["Linux 4"], runs = [
    "mmap1 processes",
  ], preset = "linux-5.15", place = "spread", broadcast = 700 },
  { kernels = ["Linux 4"], runs = ["lock2 threads"], lock = "qspinlock" },
  { kernels = ["Linux"], because = "no preset is of its time" },
]

[machines]
"Intel" = "freebsd-96"
"Intel Xeon E7" = "xeon-4s"

[shapes]
16 = "2x4x2"

[clocks]
"Intel" = [[1, 3.8], [8, 2.8]]
"#;

#[test]
fn the_first_line_that_fits_stands_in() {
    let mapping = Mapping::read("good", GOOD).unwrap();
    let stand_in = |kernel, workload, mode| mapping.stand_in(kernel, workload, mode);
    let name = |found: Result<StandIn, String>| found.map(|found| found.to_string());
    let (threads, processes) = (Mode::Threads, Mode::Processes);
    assert_eq!(
        name(stand_in("Linux 4.15", "mmap1", threads)),
        Ok("linux-3.0-fixes".into())
    );
    assert_eq!(
        name(stand_in("Linux 4.15", "mmap1", processes)),
        Ok("linux-5.15, spread, broadcast".into())
    );
    assert_eq!(
        name(stand_in("Linux 4.15", "lock2", threads)),
        Ok("qspinlock".into())
    );
    let why = |kernel, workload, mode| name(stand_in(kernel, workload, mode)).unwrap_err();
    assert_eq!(
        why("Linux 4.15", "mmap2", processes),
        "no preset is of its time"
    );
    assert_eq!(why("Linux 6.4", "pft9", threads), "unknown workload pft9");
    assert!(why("Plan 9", "mmap1", threads).contains("Plan 9"));
}

#[test]
fn a_machine_has_the_costs_of_the_nearest_and_its_own_shape() {
    let mapping = Mapping::read("good", GOOD).unwrap();
    let curves = all().unwrap_or_else(|error| panic!("{error}"));
    let machine = |id: &str| {
        let curve = curves.iter().find(|curve| curve.id == id).expect("a curve");
        curve.machine.clone()
    };
    let x5 = mapping
        .machine(&machine("kogan-cna/lock2-threads"))
        .unwrap();
    let four = sim::profile::MachineProfile::named("xeon-4s").unwrap();
    assert_eq!(
        (x5.name.as_str(), x5.core.pause),
        ("4x18x2", four.core.pause)
    );
    let mut unknown = machine("macy-munmap/mmap1-processes");
    let why = mapping.machine(&unknown).unwrap_err();
    assert_eq!(why, "no machine has the costs of not named");
    unknown.cpu = "Intel of some kind".into();
    let why = mapping.machine(&unknown).unwrap_err();
    assert_eq!(why, "the shape of its 96 CPUs is not known");
    unknown.cpus = 16;
    assert_eq!(mapping.machine(&unknown).unwrap().topology.shape(), "2x4x2");
}

#[test]
fn malformed_files_are_refused() {
    let planted = [
        ("[machines]", "[machine]", "unknown field `machine`"),
        (
            "kernels = [\"Linux 4\"], runs",
            "runs",
            "missing field `kernels`",
        ),
        ("kernels = [\"Linux\"]", "kernels = []", "no kernels"),
        ("kernels = [\"Linux\"]", "kernels = [\"\"]", "no kernels"),
        ("mmap1 threads", "mmap1 fibres", "mmap1 fibres is not a run"),
        ("linux-3.0-fixes", "linux-9", "unknown preset linux-9"),
        (
            "qspinlock",
            "parking_lot",
            "unknown simulated lock parking_lot",
        ),
        (
            "lock = \"qspinlock\"",
            "because = \" \"",
            "one of preset, lock and because",
        ),
        (
            ", because = \"no preset is of its time\"",
            "",
            "one of preset, lock and because",
        ),
        ("\"spread\"", "\"apart\"", "unknown place apart"),
        (
            "lock =",
            "broadcast = 500, lock =",
            "a broadcast without a preset",
        ),
        (
            "because = \"no",
            "place = \"pack\", because = \"no",
            "a place without a preset or a lock",
        ),
        (
            "lock =",
            "times = 0, lock =",
            "lines, a section or times without a lock",
        ),
        (
            "preset = \"linux-3.0-fixes\"",
            "lines = 1, preset = \"linux-3.0-fixes\"",
            "lines, a section or times without a lock",
        ),
        (
            "lock =",
            "preset = \"scalevm\", lock =",
            "one of preset, lock and because",
        ),
        ("\"freebsd-96\"", "\"freebsd-97\"", "machine \"Intel\": "),
        ("2x4x2", "2x4x4", "shape 2x4x4 is not one of 16 CPUs"),
        ("2x4x2", "2x8", "shape 2x8 is not one of 16 CPUs"),
        ("16 = ", "x = ", "is not one of x CPUs"),
        ("[8, 2.8]", "[1, 2.8]", "clocks of \"Intel\": "),
        ("[8, 2.8]", "[8, 0.0]", "clocks of \"Intel\": "),
        ("preset = ", "preset : ", "line 3: "),
    ];
    refused::each(GOOD, "bad.toml", &planted, |text| {
        Mapping::read("bad.toml", text)
    });
}

#[test]
fn every_line_is_for_a_curve() {
    let mapping = Mapping::built_in().unwrap_or_else(|error| panic!("{error}"));
    let curves = all().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(mapping.unused(&curves), [""; 0]);
    let setups = curves
        .iter()
        .filter_map(|curve| Setup::of(curve, &mapping).ok());
    let setups: Vec<Setup> = setups.collect();
    assert!(setups.len() >= 30, "{} curves", setups.len());
    let effort = Effort {
        counts: 4,
        seeds: 1..2,
    };
    assert!(setups.iter().all(|setup| setup.steps(&effort) > 0));
    let held_back = setups
        .iter()
        .filter(|setup| is_held_back(setup.curve.file()));
    assert!((1..setups.len()).contains(&held_back.count()));
    let idle = GOOD.replace(
        "\"Linux 4\"], runs = [\"lock2",
        "\"Linux 99\"], runs = [\"lock2",
    );
    let idle = Mapping::read("idle", &idle).unwrap();
    assert_eq!(idle.unused(&curves), ["Linux 99"]);
}

/// The simulator's list of comparisons is what the page of results has. With `PAGES=write` it is
/// written anew.
#[test]
fn the_list_of_comparisons_is_that_of_the_page() {
    let page = include_str!("../../../docs/results/predictions.md");
    let mapping = Mapping::built_in().unwrap_or_else(|error| panic!("{error}"));
    let curves = all().unwrap_or_else(|error| panic!("{error}"));
    let mut lines = vec!["workload,mode,system,machine,mechanism,tasks,error".to_owned()];
    for row in page.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [
            "",
            "predicted",
            id,
            _,
            tasks,
            _,
            _,
            error,
            ..,
            mechanism,
            _,
            _,
            "",
        ] = cells[..]
        else {
            continue;
        };
        // Of some pairs only the change was compared.
        let known = curves.iter().find(|curve| curve.id == id);
        let Some((curve, Ok(setup))) = known.map(|curve| (curve, Setup::of(curve, &mapping)))
        else {
            continue;
        };
        if error != "–" {
            lines.push(format!(
                "{},{},{},{},{mechanism},{tasks},{error}",
                curve.workload,
                curve.mode.name(),
                setup.before.system(),
                setup.machine.costs
            ));
        }
    }
    let text = lines.join("\n") + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/compared.csv");
    if std::env::var("PAGES").is_ok_and(|pages| pages == "write") {
        std::fs::write(path, &text).expect("written");
    }
    assert_eq!(std::fs::read_to_string(path).expect("the list"), text);
}
