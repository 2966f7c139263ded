//! Histories in the format of another tool.

use stats::export::{Curve, CurveError, csv};
use stats::history::History;

use super::{history, machine, os, run, simulated, threads};

/// One and two tasks of each kind, twice, and another label before.
fn curve() -> History {
    let file = |second: u64, label: &str, rates: [u64; 4]| {
        let subjects = [os(1), threads(1), os(2), threads(2)];
        let machine = || Some(machine("6.18.5"));
        (0..)
            .zip(subjects.iter().zip(rates))
            .flat_map(|(index, (subject, rate))| {
                run(
                    subject,
                    second + index,
                    Some(label),
                    machine(),
                    &[rate, rate],
                )
            })
            .collect()
    };
    history(vec![
        file(10, "old \"1\"", [1, 1, 1, 1]),
        file(20, "new", [100, 110, 190, 120]),
        file(30, "new", [104, 114, 194, 124]),
    ])
}

#[test]
fn will_it_scale_gets_its_table() {
    let found = curve();
    let newest = Curve::of(&found.series, None).unwrap();
    assert_eq!(newest.label(), "new");
    assert_eq!(
        csv(&newest),
        "tasks,processes,processes_idle,threads,threads_idle,linear\n\
         0,0,100,0,100,0\n1,102,,112,,112\n2,192,,122,,224\n"
    );
    let old = csv(&Curve::of(&found.series, Some("old \"1\"")).unwrap());
    assert!(old.ends_with("\n1,1,,1,,1\n2,1,,1,,2\n"), "{old}");
    // Two tasks as processes only, and no single one to be linear to.
    let found = history(vec![run(&os(2), 1, None, None, &[50])]);
    let part = csv(&Curve::of(&found.series, None).unwrap());
    assert!(part.ends_with("\n2,50,,,,0\n"), "{part}");
}

#[test]
fn a_curve_is_one_workload_on_one_system() {
    let mut files = vec![run(&os(2), 1, None, None, &[50])];
    files.push(run(&simulated(1), 1, None, None, &[50]));
    let error = Curve::of(&history(files).series, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "several curves found; choose one of: mmap1 on os (os, unknown machine); \
         mmap1 on scalevm (sim, freebsd-96 2x24x2)"
    );
    assert_eq!(Curve::of(&[], None).unwrap_err(), CurveError::Empty);
}
