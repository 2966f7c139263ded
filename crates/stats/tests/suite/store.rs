//! Stores: appended lines are read back in order, by any process, and damage is named.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use stats::Time;
use stats::record::{Measurement, Mode, Record, Subject, Summary};
use stats::store::{self, Writer};

/// A directory for this test, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("scalevm-store-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn add(&self, name: &str, content: &str) {
        fs::create_dir_all(&self.0).unwrap();
        fs::write(self.0.join(name), content).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(rates: &[u64]) -> Vec<Record> {
    let subject = Subject {
        workload: "mmap1".into(),
        on: "hosted".into(),
        vm: Some("scalevm".into()),
        tasks: 1,
        mode: Mode::Processes,
        profile: None,
        topology: None,
        cpus: None,
        scheduler: None,
        seed: None,
        unit: "operations/s".into(),
    };
    let samples: Vec<Measurement> = (1..)
        .zip(rates)
        .map(|(number, &rate)| Measurement {
            time: Some(Time::from_milliseconds(1000 * u64::from(number))),
            ..Measurement::of_counts(&subject, number, &[rate], 1.0).unwrap()
        })
        .collect();
    let mut summary = Summary::of(&samples, None).unwrap();
    summary.label = Some("abc".into());
    let samples = samples.into_iter().map(Record::Sample);
    samples
        .chain([Record::Summary(Box::new(summary))])
        .collect()
}

fn text(records: &[Record]) -> String {
    let mut bytes = Vec::new();
    records
        .iter()
        .for_each(|record| record.write(&mut bytes).unwrap());
    String::from_utf8(bytes).unwrap()
}

fn error(path: &Path) -> String {
    store::read(&[path]).unwrap_err().to_string()
}

#[test]
fn what_is_appended_is_read_back_line_by_line() {
    let scratch = Scratch::new("append");
    let records = run(&[100, 110]);
    let mut writer = Writer::create(&scratch.0).unwrap();
    for (count, record) in (1..).zip(&records) {
        writer.append(record).unwrap();
        // Another process would see each line at once, even after a crash.
        let found = store::read(&[&scratch.0]).unwrap();
        assert_eq!(found.files[0].records, records[..count]);
    }
    assert_eq!(writer.path().parent(), Some(scratch.0.as_path()));
    let found = store::read(&[writer.path()]).unwrap();
    let runs = found.files[0].runs();
    assert_eq!((runs.len(), runs[0].complete), (1, true));
    assert_eq!(runs[0].time, Some(Time::from_milliseconds(2000)));
    assert_eq!(runs[0].label.as_deref(), Some("abc"));
}

#[test]
fn writers_at_once_have_files_of_their_own_and_leave_none_without_results() {
    let scratch = Scratch::new("clash");
    let paths: Vec<PathBuf> = std::thread::scope(|scope| {
        let write = || {
            let mut writer = Writer::create(&scratch.0).unwrap();
            for record in run(&[100, 110]) {
                writer.append(&record).unwrap();
            }
            writer.path().to_owned()
        };
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(write)).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(paths.iter().collect::<BTreeSet<_>>().len(), 16);
    drop(Writer::create(&scratch.0).unwrap());
    let found = store::read(&[&scratch.0]).unwrap();
    assert_eq!(found.files.len(), 16);
    assert!(
        found
            .files
            .iter()
            .all(|file| file.records == run(&[100, 110]))
    );
    assert!(found.files.is_sorted_by_key(|file| file.path.clone()));
}

#[test]
fn a_torn_last_line_is_a_warning_and_any_other_damage_an_error() {
    let scratch = Scratch::new("torn");
    let whole = text(&run(&[100, 110]));
    let first = whole.find('\n').unwrap() + 1;
    // Cut anywhere in the second line: the first is kept. A line that only lacks its line end is
    // whole.
    for cut in [first + 1, first + 40, whole.len() - 1] {
        scratch.add("a.jsonl", &whole[..cut]);
        let found = store::read(&[&scratch.0]).unwrap();
        let torn = cut < whole.len() - 1;
        assert_eq!(found.files[0].records.len(), if torn { 1 } else { 3 });
        let path = scratch.0.join("a.jsonl");
        let wanted = format!(
            "{}:2: the last line is incomplete and was ignored",
            path.display()
        );
        let wanted: &[String] = if torn { &[wanted] } else { &[] };
        assert_eq!(found.warnings, wanted);
    }
    // Also in the middle of a character.
    scratch.add("a.jsonl", &whole);
    let mut bytes = whole.clone().into_bytes();
    bytes.extend(b"{\"kind\":\"sam\xc3");
    fs::write(scratch.0.join("a.jsonl"), bytes).unwrap();
    assert_eq!(store::read(&[&scratch.0]).unwrap().warnings.len(), 1);
    scratch.add("a.jsonl", &whole.replacen("\"tasks\":1", "\"tasks\":0", 1));
    let found = error(&scratch.0);
    assert!(found.ends_with("a.jsonl:1: `tasks` is 0"), "{found}");
    scratch.add(
        "a.jsonl",
        &whole.replacen("1970-01-01T00:00:02.000Z", "noon", 1),
    );
    let found = error(&scratch.0);
    assert!(
        found.contains("a.jsonl:2: expected a time, e.g. "),
        "{found}"
    );
}

#[test]
fn what_else_lies_in_a_store_is_passed_over() {
    let scratch = Scratch::new("aside");
    let profile =
        "{\"kind\":\"profile\",\"workload\":\"mmap1\",\"busy\":{}}\n{\"kind\":\"attribution\"}\n";
    scratch.add("b.jsonl", &format!("{profile}\n{}", text(&run(&[7]))));
    scratch.add("a.jsonl", "");
    scratch.add("notes.txt", "mine");
    fs::create_dir(scratch.0.join("c.jsonl")).unwrap();
    let found = store::read(&[&scratch.0]).unwrap();
    let counts: Vec<usize> = found.files.iter().map(|file| file.records.len()).collect();
    assert_eq!((counts.as_slice(), found.warnings.len()), (&[0, 2][..], 0));
    scratch.add("b.jsonl", "{\"kind\":\"sampel\"}\n");
    assert!(error(&scratch.0).contains("b.jsonl:1: unknown variant `sampel`"));
}

#[test]
fn old_lines_without_time_and_label_are_read() {
    let scratch = Scratch::new("old");
    let old: String = text(&run(&[100, 110]))
        .replace(",\"time\":\"1970-01-01T00:00:01.000Z\"", "")
        .replace(",\"time\":\"1970-01-01T00:00:02.000Z\"", "")
        .replace(",\"label\":\"abc\"", "");
    assert!(!old.contains("time") && !old.contains("label"), "{old}");
    scratch.add("old.jsonl", &old);
    let found = store::read(&[&scratch.0]).unwrap();
    let run = &found.files[0].runs()[0];
    assert_eq!((run.time, &run.label, run.average), (None, &None, 105.0));
}

#[test]
fn a_path_without_results_is_an_error() {
    let scratch = Scratch::new("none");
    assert!(
        error(&scratch.0).contains("No such file"),
        "{}",
        error(&scratch.0)
    );
    fs::create_dir(&scratch.0).unwrap();
    let empty = format!("{}: no results", scratch.0.display());
    assert_eq!(error(&scratch.0), empty);
    scratch.add("a.jsonl", "{\"kind\":\"profile\"}\n");
    assert_eq!(error(&scratch.0), empty);
    // A store is created if its parent exists, and otherwise not.
    let failed = Writer::create(&scratch.0.join("no/where")).unwrap_err();
    assert!(
        failed.to_string().contains("no/where: No such file"),
        "{failed}"
    );
    let failed = Writer::create(&scratch.0.join("a.jsonl")).unwrap_err();
    assert!(failed.to_string().contains("Not a directory"), "{failed}");
}
