//! Result files: written records are read back, and damage is named.

use proptest::prelude::*;
use stats::environment::{Tool, collect};
use stats::record::{Measurement, Mode, Record, Subject, Summary, parse, read, runs};

fn subject(tasks: u32) -> Subject {
    Subject {
        workload: "mmap1".into(),
        on: "hosted".into(),
        vm: Some("freebsd-di".into()),
        tasks,
        mode: Mode::Processes,
        profile: None,
        topology: None,
        cpus: None,
        scheduler: None,
        seed: Some(7),
        unit: "ops/s".into(),
    }
}

fn sample(number: u32, counts: &[u64]) -> Measurement {
    Measurement::of_counts(&subject(counts.len() as u32), number, counts, 1.25).unwrap()
}

fn summary(samples: &[Measurement]) -> Record {
    let tool = Tool {
        version: "scalevm 0.1.0",
        commit: None,
        arguments: &["run".into(), "mmap1".into()],
    };
    Record::Summary(Box::new(
        Summary::of(samples, Some(collect(&tool))).unwrap(),
    ))
}

fn text(records: &[Record]) -> String {
    let mut bytes = Vec::new();
    records
        .iter()
        .for_each(|record| record.write(&mut bytes).unwrap());
    String::from_utf8(bytes).unwrap()
}

fn file() -> Vec<Record> {
    let samples = [sample(1, &[100, 150]), sample(2, &[110, 190])];
    let summary = summary(&samples);
    samples
        .into_iter()
        .map(Record::Sample)
        .chain([summary])
        .collect()
}

#[test]
fn lines_have_the_documented_fields() {
    let text = text(&file());
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        concat!(
            r#"{"kind":"sample","workload":"mmap1","on":"hosted","vm":"freebsd-di","tasks":2,"#,
            r#""mode":"processes","profile":null,"topology":null,"seed":7,"unit":"ops/s","#,
            r#""sample":1,"min":80.0,"max":120.0,"total":200.0,"average":100.0,"seconds":1.25}"#
        )
    );
    let summary: serde_json::Value = serde_json::from_str(lines[2]).unwrap();
    let field = |name: &str| summary[name].as_f64().unwrap();
    assert_eq!(summary["kind"], "summary");
    assert_eq!(
        ["sample", "min", "max", "total", "average", "seconds"].map(field),
        [2.0, 200.0, 240.0, 440.0, 220.0, 2.5]
    );
    assert!((field("stddev") - 800_f64.sqrt()).abs() < 1e-9);
    assert_eq!(summary["machine"]["arguments"][1], "mmap1");
}

#[test]
fn what_is_written_is_read_back() {
    let records = file();
    assert_eq!(parse("f", text(&records).as_bytes()).unwrap(), records);
    let path = std::env::temp_dir().join(format!("scalevm-record-{}.jsonl", std::process::id()));
    std::fs::write(&path, text(&records) + "\n").unwrap();
    assert_eq!(read(path.to_str().unwrap()).unwrap(), records);
    std::fs::remove_file(&path).unwrap();
    assert!(
        read(path.to_str().unwrap())
            .unwrap_err()
            .to_string()
            .contains("No such file")
    );
}

#[test]
fn damage_is_named_with_file_line_and_reason() {
    let sound = text(&file());
    let error = |damaged: String| {
        parse("r.jsonl", damaged.as_bytes())
            .unwrap_err()
            .to_string()
    };
    let cases = [
        (
            r#""seconds":1.25"#,
            r#""seconds":0"#,
            "r.jsonl:1: `seconds` is 0",
        ),
        (r#""tasks":2,"#, "", "r.jsonl:1: missing field `tasks`"),
        (
            r#""tasks":2"#,
            r#""tasks":-2"#,
            "r.jsonl:1: invalid value: integer `-2`, expected u32",
        ),
        (
            r#""kind":"sample""#,
            r#""kind":"sampel""#,
            "r.jsonl:1: unknown variant `sampel`, expected `sample` or `summary`",
        ),
        (
            r#""mode":"processes""#,
            r#""mode":"fibres""#,
            "r.jsonl:1: unknown variant `fibres`, expected `processes` or `threads`",
        ),
        (
            r#""total":200.0"#,
            r#""total":201.0"#,
            "r.jsonl:1: `total` 201 is not 2 times `average` 100",
        ),
        (
            r#""min":80.0"#,
            r#""min":101.0"#,
            "r.jsonl:1: `average` 100 is not between `min` 101 and `max` 120",
        ),
        (r#""min":80.0"#, r#""min":-80.0"#, "r.jsonl:1: `min` is -80"),
        (
            r#""workload":"mmap1""#,
            r#""workload":"""#,
            "r.jsonl:1: `workload` is empty",
        ),
        (
            r#""version":"scalevm 0.1.0""#,
            r#""version":null"#,
            "r.jsonl:3: invalid type: null, expected a string",
        ),
        // The value is null, and its reason now belongs to another field.
        (
            r#""commit":""#,
            r#""comet":""#,
            "r.jsonl:3: `machine.commit` is null without a reason",
        ),
    ];
    for (from, to, wanted) in cases {
        assert!(sound.contains(from), "{from}\n{sound}");
        let found = error(sound.replacen(from, to, 1));
        assert!(found.starts_with(wanted), "{found}\nwanted {wanted}");
    }
    // A file whose last line is cut in the middle, as by a full disk.
    let cut = error(sound[..sound.len() - 20].to_string());
    assert!(
        cut.starts_with("r.jsonl:3: EOF while parsing") && cut.contains(" at column "),
        "{cut}"
    );
    assert_eq!(error("\n\n".into()), "r.jsonl: no records");
    assert!(
        error("1005918\n".into()).starts_with("r.jsonl:1: "),
        "a file of numbers is no result file"
    );
}

#[test]
fn records_gather_to_runs() {
    let mut records = file();
    records.push(Record::Sample(sample(1, &[1, 2, 3])));
    let found = runs(&records);
    assert_eq!(found.len(), 2);
    assert_eq!(
        (
            found[0].complete,
            found[0].average,
            found[0].totals.as_slice()
        ),
        (true, 220.0, &[200.0, 240.0][..])
    );
    assert_eq!(
        (
            found[1].complete,
            found[1].subject.tasks,
            found[1].totals.len()
        ),
        (false, 3, 1)
    );
    let without_samples = runs(&records[2..3]);
    assert_eq!(
        (without_samples[0].complete, without_samples[0].average),
        (true, 220.0)
    );
}

#[test]
fn counts_without_an_interval_or_tasks_are_no_measurement() {
    assert_eq!(Measurement::of_counts(&subject(1), 1, &[], 1.0), None);
    assert_eq!(Measurement::of_counts(&subject(1), 1, &[5], 0.0), None);
    assert_eq!(
        Summary::of(
            &[sample(1, &[5])],
            Some(collect(&Tool {
                version: "",
                commit: None,
                arguments: &[]
            }))
        )
        .unwrap()
        .stddev,
        None
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_measurement_survives_the_round_trip(
        counts in proptest::collection::vec(0..u64::MAX / 1000, 1..40),
        seconds in 1e-3..1e4,
    ) {
        let tasks = subject(counts.len() as u32);
        let record = Record::Sample(Measurement::of_counts(&tasks, 1, &counts, seconds).unwrap());
        let text = text(std::slice::from_ref(&record));
        prop_assert_eq!(parse("f", text.as_bytes()).unwrap(), [record]);
    }

    #[test]
    fn a_cut_file_is_an_error_or_a_shorter_file(at in 1_usize..400) {
        let whole = text(&[Record::Sample(sample(1, &[3])), Record::Sample(sample(2, &[4]))]);
        let at = at.min(whole.len() - 1);
        match parse("f", &whole.as_bytes()[..at]) {
            Ok(records) => {
                prop_assert_eq!(records.len(), whole[..at].lines().count());
                prop_assert_eq!(&records[0], &Record::Sample(sample(1, &[3])));
            }
            Err(error) => prop_assert!(error.to_string().starts_with("f:"), "{}", error),
        }
    }
}
