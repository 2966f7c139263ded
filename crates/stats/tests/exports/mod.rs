//! Histories in the formats of other tools.

use stats::export::{Curve, CurveError, csv, lkp, openmetrics};
use stats::history::History;

use super::{history, machine, os, run, simulated, threads};

mod grammar;

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
    // lkp's parser takes rows of digits, commas and points.
    let fits = |line: &str| line.chars().all(|c| c.is_ascii_digit() || ",.".contains(c));
    assert!(csv(&newest).lines().skip(1).all(fits));
    // Two tasks as processes only, and no single one to be linear to.
    let found = history(vec![run(&os(2), 1, None, None, &[50])]);
    let part = csv(&Curve::of(&found.series, None).unwrap());
    assert!(part.ends_with("\n2,50,,,,0\n"), "{part}");
}

#[test]
fn lkp_gets_its_statistics() {
    let found = curve();
    let wanted = serde_json::json!({
        "will-it-scale.1.linear": [110, 114],
        "will-it-scale.1.processes": [100, 104],
        "will-it-scale.1.threads": [110, 114],
        "will-it-scale.2.linear": [220, 228],
        "will-it-scale.2.processes": [190, 194],
        "will-it-scale.2.threads": [120, 124],
        // (100 + 190 / 2) / 2, (110 + 120 / 2) / 2, and so on, without their fractions.
        "will-it-scale.per_process_ops": [97, 100],
        "will-it-scale.per_thread_ops": [85, 88],
        "will-it-scale.scalability": [190.0 / 220.0, 194.0 / 228.0],
        "will-it-scale.workload": [520, 536],
    });
    assert_eq!(lkp(&Curve::of(&found.series, None).unwrap()), wanted);
    let old = lkp(&Curve::of(&found.series, Some("old \"1\"")).unwrap());
    assert_eq!(old["will-it-scale.workload"], serde_json::json!([4]));
}

#[test]
fn a_curve_is_one_workload_on_one_system() {
    let mut files = vec![run(&os(2), 1, None, None, &[50])];
    files.push(run(&simulated(1), 1, None, None, &[50]));
    let error = Curve::of(&history(files).series, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there are several curves; choose one of: mmap1 on os (os, unknown machine); \
         mmap1 on scalevm (sim, freebsd-96 2x24x2)"
    );
    assert_eq!(Curve::of(&[], None).unwrap_err(), CurveError::Empty);
}

#[test]
fn openmetrics_text_keeps_to_the_grammar() {
    let mut files = vec![run(&os(2), 0, None, None, &[50])];
    files.push(run(&simulated(1), 5, Some("line\nbreak"), None, &[50, 52]));
    let mut found = history(files);
    found.series.extend(curve().series);
    let (text, without_time) = openmetrics(&found.series);
    assert_eq!(without_time, 1);
    let samples = grammar::check(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
    // 13 runs with a time, 13 of several samples.
    assert_eq!(samples, 26);
    assert!(
        text.contains(r#"machine="Some \"CPU\"\\ × 2",label="old \"1\""} 1.0 10.000"#),
        "{text}"
    );
    assert!(
        text.contains(r#"label="line\nbreak"} 51.0 5.000"#),
        "{text}"
    );
    assert_eq!(openmetrics(&[]).0, "# EOF\n");
}
