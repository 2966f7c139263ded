//! Histories: runs get their series and label, labels are compared, and changes are found and
//! explained.

use stats::Time;
use stats::change;
use stats::environment::{Environment, Tool, collect_below};
use stats::history::{History, Of, gather};
use stats::record::{Measurement, Mode, Record, Subject, Summary};
use stats::store::{File, Store};
use stats::verdict::{Rule, Word};

mod exports;

/// A machine with a kernel of this release.
fn machine(release: &str) -> Environment {
    let tool = Tool {
        version: "scalevm 0.1.0",
        commit: Some("0123456789abcdef0123456789abcdef01234567"),
        arguments: &[],
    };
    let nowhere = std::path::Path::new("/nowhere");
    let mut machine = collect_below(nowhere, &tool, std::time::Duration::ZERO);
    machine.kernel = Some(format!("Linux {release} #1 SMP"));
    machine.cpu = Some("Some \"CPU\"\\".into());
    machine.cpus = Some(2);
    machine
}

fn os(tasks: u32) -> Subject {
    Subject {
        workload: "mmap1".into(),
        on: "os".into(),
        vm: None,
        tasks,
        mode: Mode::Processes,
        profile: None,
        topology: None,
        cpus: None,
        scheduler: None,
        seed: None,
        unit: "operations/s".into(),
    }
}

fn threads(tasks: u32) -> Subject {
    Subject {
        mode: Mode::Threads,
        ..os(tasks)
    }
}

fn simulated(seed: u64) -> Subject {
    Subject {
        on: "sim".into(),
        vm: Some("scalevm".into()),
        profile: Some("freebsd-96".into()),
        topology: Some("2x24x2".into()),
        seed: Some(seed),
        ..os(96)
    }
}

/// A run that ended in the given second, with samples of these totals.
fn run(
    subject: &Subject,
    second: u64,
    label: Option<&str>,
    machine: Option<Environment>,
    totals: &[u64],
) -> Vec<Record> {
    let of = |(number, &total): (u32, &u64)| {
        let mut counts = vec![0; subject.tasks as usize];
        counts[0] = total;
        let time = (second > 0).then(|| Time::from_milliseconds(1000 * second));
        Measurement {
            time,
            ..Measurement::of_counts(subject, number, &counts, 1.0).unwrap()
        }
    };
    let samples: Vec<Measurement> = (1..).zip(totals).map(of).collect();
    let mut summary = Summary::of(&samples, machine).unwrap();
    summary.label = label.map(Into::into);
    let samples = samples.into_iter().map(Record::Sample);
    samples
        .chain([Record::Summary(Box::new(summary))])
        .collect()
}

/// The history of files with these records.
fn history(files: Vec<Vec<Record>>) -> History {
    let file = |(index, records): (usize, Vec<Record>)| File {
        path: format!("{index}.jsonl"),
        records,
    };
    gather(&Store {
        files: files.into_iter().enumerate().map(file).collect(),
        warnings: Vec::new(),
    })
}

/// Runs on `os`, one file each, from (second, label, rate).
fn runs(all: &[(u64, &str, u64)]) -> History {
    let one = |&(second, label, rate): &(u64, &str, u64)| {
        run(
            &os(2),
            second,
            Some(label),
            Some(machine("6.18.5")),
            &[rate],
        )
    };
    history(all.iter().map(one).collect())
}

#[test]
fn what_differs_is_another_series_and_labels_have_a_line_each() {
    let mut second = run(&os(2), 20, Some("b"), Some(machine("6.18.5")), &[7, 9]);
    second.extend(run(&os(4), 21, Some("b"), Some(machine("6.18.5")), &[5]));
    second.extend(run(&threads(2), 22, None, Some(machine("6.18.5")), &[5]));
    // Cut short: its samples have no summary.
    second.push(run(&os(8), 23, None, None, &[5]).remove(0));
    let first = run(
        &os(2),
        10,
        Some("a"),
        Some(machine("6.12.1")),
        &[5, 6, 7, 8, 9, 10],
    );
    let found = history(vec![second, first]);
    assert_eq!(found.cut_short, 1);
    let keys: Vec<_> = found
        .series
        .iter()
        .map(|one| (one.key.mode.name(), one.key.tasks))
        .collect();
    assert_eq!(keys, [("processes", 2), ("processes", 4), ("threads", 2)]);
    let rule = Rule::default();
    let lines = found.series[0].lines(&rule);
    let labels: Vec<_> = lines.iter().map(|line| (line.label, line.of)).collect();
    assert_eq!(labels, [("a", Of::Samples(6)), ("b", Of::Samples(2))]);
    assert_eq!(
        (
            lines[0].median.median,
            lines[0].median.low,
            lines[0].median.high
        ),
        (7.5, 5.0, 10.0)
    );
    let change = lines[1].change.as_ref().unwrap();
    assert!(
        change.verdict.is_err() && !change.in_turn,
        "one run proves nothing"
    );
    assert_eq!(change.differences[0].to_string(), "kernel 6.12.1 → 6.18.5");
    // Without a label the kernel serves as one.
    assert_eq!(found.series[2].lines(&rule)[0].label, "6.18.5");
    let ours = Subject {
        on: "hosted".into(),
        vm: Some("scalevm".into()),
        ..os(1)
    };
    let ours = history(vec![run(&ours, 1, None, Some(machine("6.18.5")), &[1])]);
    assert!(ours.series[0].runs[0].label.starts_with("0123456789ab"));
}

#[test]
fn the_run_is_the_unit_and_runs_in_turn_are_neighbours() {
    let all: Vec<(u64, &str, u64)> = (0..6)
        .flat_map(|turn| {
            [
                (10 + 2 * turn, "a", 100 + turn),
                (11 + 2 * turn, "b", 90 + turn),
            ]
        })
        .collect();
    let found = runs(&all);
    let lines = found.series[0].lines(&Rule::default());
    assert_eq!(lines.len(), 2);
    assert_eq!((lines[0].of, lines[1].of), (Of::Runs(6), Of::Runs(6)));
    assert_eq!((lines[1].median.median, lines[1].median.low), (92.5, 90.0));
    let change = lines[1].change.as_ref().unwrap();
    assert!(change.in_turn);
    assert_eq!(change.verdict.as_ref().unwrap().word, Word::Slower);
    assert_eq!((change.label, change.ratio), ("a", 92.5 / 102.5));
    assert_eq!(lines[0].last, Some(Time::from_milliseconds(20_000)));
}

#[test]
fn a_change_of_level_is_found_and_explained() {
    let level = |from: u64, label, release: &'static str, rate: u64| {
        (0..8).map(move |index| {
            let rates = [rate + 1000 * index % 3000];
            run(&os(2), from + index, label, Some(machine(release)), &rates)
        })
    };
    let old = Some("a");
    let found = history(
        level(10, old, "6.12.1", 1_000_000)
            .chain(level(20, old, "6.18.5", 950_000))
            .chain(level(30, Some("b"), "6.18.5", 1_200_000))
            .collect(),
    );
    let series = &found.series[0];
    let shifts = series.shifts(&change::Options::default());
    let found: Vec<_> = shifts
        .iter()
        .map(|shift| (shift.change.at, shift.within_label, shift.differences.len()))
        .collect();
    assert_eq!(found, [(8, true, 1), (16, false, 0)]);
    assert_eq!(
        shifts[0].differences[0].to_string(),
        "kernel 6.12.1 → 6.18.5"
    );
    assert_eq!(shifts[1].run.label, "b");
}

#[test]
fn a_simulated_seed_counts_once() {
    let sim = |second, label, seed, totals: &[u64]| {
        run(&simulated(seed), second, Some(label), None, totals)
    };
    let found = history(vec![
        sim(1, "a", 1, &[100, 101, 102]),
        sim(2, "a", 1, &[100, 101, 102]),
        sim(3, "a", 3, &[102, 103, 104, 105]),
        sim(4, "b", 1, &[200, 202, 204]),
    ]);
    let lines = found.series[0].lines(&Rule::default());
    assert_eq!((lines[0].of, lines[0].median.median), (Of::Seeds(6), 102.5));
    assert_eq!(lines[1].of, Of::Seeds(3));
    assert_eq!(found.series[0].key.machine, "freebsd-96 2x24x2");
    // Twenty repetitions of the same run count as one run.
    let again: Vec<_> = (0..20)
        .map(|second| sim(2 + second, "b", 1, &[200]))
        .collect();
    let before = (0..20).map(|second| sim(1 + second, "a", 1, &[100]));
    let found = history(before.chain(again).collect());
    assert_eq!(found.series[0].shifts(&change::Options::default()).len(), 0);
}
