//! `scalevm incident` as a user meets it.

mod support;

use std::fs;
use support::command::{exits, failure, json, number, quiet, scalevm};
use support::scratch::Scratch;
use support::tree::root;

#[test]
fn incidents_are_listed_and_shown() {
    let lines = json(&quiet("incident list --json"));
    assert!(lines.len() >= 12, "{lines:?}");
    let table = quiet("incident list");
    for line in &lines {
        let name = line["incident"].as_str().expect("a name");
        assert!(table.contains(name), "{table}");
    }
    let page = fs::read_to_string(root().join("incidents/bun/README.md")).expect("a page");
    assert_eq!(quiet("incident show bun"), page);
    let error = failure("incident show banana", 2);
    assert!(
        error.contains("banana: no such incident or folder; expected one of bun, "),
        "{error}"
    );
}

#[test]
fn an_incident_is_found_on_its_machine() {
    let lines = json(&quiet("incident run opensearch --json"));
    let [line] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert_eq!(
        (&line["vm"], &line["machine"], &line["threads"]),
        (&"linux-5.15".into(), &"epyc-256 1x16x2".into(), &32.into())
    );
    assert_eq!(
        (&line["is_named"], &line["holds"]),
        (&true.into(), &true.into())
    );
    assert!(number(&line["comparisons"][0]["factor"]) > 2.0, "{line}");
    let text = quiet("incident run opensearch");
    assert!(
        text.contains("bottleneck: the lock \"mmap_lock\""),
        "{text}"
    );
}

#[test]
fn an_incident_runs_on_this_computer() {
    for on in ["os", "hosted"] {
        // How much two busy CPUs contend is chance.
        let output = scalevm(&format!("incident run wasmer --on {on} --json")).output();
        let output = output.expect("the command starts");
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
        let lines = json(&String::from_utf8(output.stdout).expect("UTF-8"));
        assert_eq!(lines[0]["on"], on);
        let comparisons = lines[0]["comparisons"].as_array().expect("comparisons");
        assert_eq!(comparisons.len(), 2);
        for one in comparisons {
            assert!(
                number(&one["factor"]) > 0.0 && one["published"].is_null(),
                "{one}"
            );
        }
    }
}

#[test]
fn an_incident_of_ones_own_is_a_folder_and_may_be_told_wrong() {
    let own = Scratch::folder("outage");
    for file in ["README.md", "incident.toml", "before.vmrec", "after.vmrec"] {
        let from = root().join("incidents/opensearch").join(file);
        fs::copy(from, own.inside(file)).expect("a copy");
    }
    let run = |code: i32| exits(code, scalevm("incident run --json").arg(own.path())).0;
    assert_eq!(json(&run(0))[0]["holds"], true);
    let about = fs::read_to_string(own.inside("incident.toml")).expect("a file");
    own.write(
        "incident.toml",
        &about.replace("named = \"mmap_lock\"", "named = \"lru_lock\""),
    );
    assert_eq!(json(&run(1))[0]["is_named"], false);
    fs::remove_file(own.inside("after.vmrec")).expect("it exists");
    let (_, error) = exits(2, scalevm("incident run").arg(own.path()));
    assert!(error.contains("after.vmrec"), "{error}");
}
