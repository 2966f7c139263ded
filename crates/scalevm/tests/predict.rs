//! `scalevm predict` as a user meets it.

mod support;

use support::command::{exits, failure, json, number, output, quiet, scalevm, success, text};
use support::scratch::Scratch;

#[test]
fn a_pair_of_locks_is_predicted_and_scored() {
    let arguments = "predict kogan-cna/lock2-threads wang-arm --counts 2 --json";
    let (first, second) = (output(arguments), output(arguments));
    assert_eq!(text(&first.stdout), text(&second.stdout), "the same bytes");
    let lines = json(&text(&first.stdout));
    let of = |id: &str| {
        let found = lines.iter().find(|line| line["curve"] == id);
        found.unwrap_or_else(|| panic!("no {id}: {lines:?}"))
    };
    let lock2 = of("kogan-cna/lock2-threads");
    assert_eq!(
        (&lock2["stands_in"], &lock2["after"], &lock2["topology"]),
        (&"qspinlock".into(), &"cna".into(), &"4x18x2".into())
    );
    let points = lock2["points"].as_array().expect("points");
    let tasks: Vec<_> = points.iter().map(|point| point["tasks"].as_u64()).collect();
    // In addition to 1, 16 and 142, the counts on which the predicted knee depends.
    assert_eq!(tasks, [1, 2, 4, 8, 16, 142].map(Some));
    let ratio =
        |point: &serde_json::Value| number(&point["predicted"]) / number(&point["measured"]);
    assert!((ratio(&points[0]) - 1.0).abs() < 0.02, "fitted at one task");
    assert_eq!(lock2["held_out"], serde_json::json!([142]));
    let error = number(&lock2["error"]);
    assert!(
        (error - ratio(&points[5]).ln().abs()).abs() < 1e-9,
        "{lock2}"
    );
    assert!(number(&lock2["usl_error"]) > 0.0 && number(&lock2["linear_error"]) > 1.0);
    assert!(number(&lock2["change"]) > 1.03 && number(&lock2["measured_change"]) > 2.0);
    let band = &lock2["band"];
    let holds =
        number(&band["low"]) <= ratio(&points[5]) && ratio(&points[5]) <= number(&band["high"]);
    assert_eq!(lock2["holds"], holds);
    assert_eq!(first.status.code(), Some(i32::from(!holds)));
    let arm = of("wang-arm/page_fault1-processes");
    assert!(
        arm["not_predicted"]
            .as_str()
            .is_some_and(|why| why.contains("ARM"))
    );
    let all = lines.last().expect("a group");
    assert_eq!(
        (&all["kind"], &all["curves"]),
        (&"predictions".into(), &1.into())
    );
    assert!(lines.iter().all(|line| line.get("seconds").is_none()));
}

#[test]
fn results_and_predictions_may_share_a_file() {
    let folder = Scratch::folder("predict");
    let run = quiet("run mmap1 --topology 1x1x1 --seeds 1 --duration 0.001 --json");
    let predicted =
        text(&output("predict macy-munmap wang-arm/page_fault1-processes --json").stdout);
    assert!(
        predicted.contains("\"kind\":\"predictions\""),
        "{predicted}"
    );
    folder.write("all.jsonl", &(run + &predicted));
    let mut history = scalevm("history all.jsonl");
    let (shown, _) = exits(0, history.current_dir(&folder.0));
    assert!(shown.contains("mmap1"), "{shown}");
}

#[test]
fn what_was_measured_can_be_left_out() {
    let lines = json(&quiet("predict macy-munmap --unscored --json"));
    let [line] = &lines[..] else {
        panic!("{lines:?}")
    };
    assert!(line["points"][1]["measured"].is_null() && line.get("error").is_none());
    assert!(number(&line["points"][1]["predicted"]) > 0.0 && number(&line["change"]) > 1.0);
    let table = quiet("predict macy-scaling/linux-mmap1-threads-xeon --unscored");
    assert!(
        table.contains(": fitted: a call with the map locked takes "),
        "{table}"
    );
    assert!(!table.contains("medians"), "{table}");
}

#[test]
fn a_table_ends_with_what_comes_out() {
    let found = output("predict macy-munmap wang-arm/page_fault1-processes");
    let table = text(&found.stdout);
    for part in [
        "after/before",
        "not predicted",
        "unseen",
        "freebsd-di",
        "×1.5",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let last = table.lines().last().expect("a line");
    assert!(
        last.starts_with("1 of 2 curves predicted; median error "),
        "{last}"
    );
    assert!(last.contains("; 1 of 1 within their bands; "), "{last}");
    assert_eq!(found.status.code(), Some(0));
    assert!(last.ends_with("of 1 pair with the right sign"), "{last}");
}

#[test]
fn the_list_runs_nothing_and_halves_exclude_each_other() {
    let ids = |arguments: &str| {
        let lines = json(&success(arguments));
        let ids = lines
            .iter()
            .map(|line| line["curve"].as_str().expect("a curve").to_owned());
        Vec::from_iter(ids)
    };
    let all = ids("predict --list --json");
    let mut halves = ids("predict --list --json --half open");
    halves.extend(ids("predict --list --json --half held-back"));
    assert!(all.len() > 100);
    let sorted = |mut ids: Vec<String>| {
        ids.sort();
        ids
    };
    assert_eq!(sorted(halves), sorted(all));
    assert_eq!(ids("predict --list --json yan-r630 --half open"), [""; 0]);
    assert!(success("predict --list").contains("represented by"));
}

#[test]
fn bad_usage_is_told_in_a_line() {
    let errors = failure("predict kogan", 2);
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(
        errors.starts_with("scalevm: unknown source or curve kogan; "),
        "{errors}"
    );
    for arguments in [
        "predict --counts 0",
        "predict --seeds 0",
        "predict --half both",
        "predict --list --unscored",
    ] {
        failure(arguments, 2);
    }
}

#[test]
fn ones_own_results_are_predicted() {
    let folder = Scratch::folder("predict-measured");
    let machine = "--machine freebsd-96 --topology 1x4x1";
    // Four may fall into step in one run and not in the other.
    let results: String = [1, 2]
        .map(|tasks| {
            quiet(&format!(
                "run brk1 --threads --tasks {tasks} --vm linux-6.12 {machine} --seeds 1 --duration \
                 0.002 --json"
            ))
        })
        .concat();
    let file = folder.write("results.jsonl", &results);
    let predict = format!("predict --measured {file}");
    let lines = json(&text(
        &output(&format!("{predict} --vm linux-6.12 {machine} --json")).stdout,
    ));
    let line = &lines[0];
    assert_eq!(line["curve"], "brk1-threads");
    assert_eq!(line["stands_in"], "linux-6.12");
    // It is its own prediction, in another window.
    assert!(number(&line["error"]) < 0.1, "{line}");
    let other = json(&text(
        &output(&format!("{predict} --vm scalevm {machine} --json")).stdout,
    ));
    assert!(number(&other[0]["error"]) > 0.2, "{other:?}");
    assert!(failure(&format!("{predict} {machine}"), 2).contains("--vm"));
    let chosen = failure("predict macy-munmap --topology 1x4x1", 2);
    assert!(chosen.contains("only with --measured"), "{chosen}");
}
