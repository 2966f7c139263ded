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
    assert!(
        line.get("half").is_none_or(serde_json::Value::is_null),
        "{line}"
    );
    let groups = lines.iter().filter(|line| line["kind"] == "predictions");
    let names: Vec<_> = groups.map(|line| line["group"].clone()).collect();
    assert!(!names.contains(&"open".into()), "no halves: {names:?}");
    let unknown = failure(&format!("predict mmap1 --measured {file} --vm scalevm"), 2);
    assert!(unknown.contains("no curve of mmap1"), "{unknown}");
    let chosen = failure("predict macy-munmap --topology 1x4x1", 2);
    assert!(chosen.contains("only with --measured"), "{chosen}");
}

#[test]
fn a_table_of_a_pair_is_predicted() {
    let folder = Scratch::folder("predict-table");
    let file = folder.write(
        "table.txt",
        "tasks before after\n1 200e3 210e3\n2 250e3 400e3\n",
    );
    let predict = format!("predict mmap1 --measured {file} --vm freebsd-di --after freebsd-epoch");
    let lines = json(&text(
        &output(&format!("{predict} --topology 1x2x1 --json")).stdout,
    ));
    let line = &lines[0];
    assert_eq!(line["curve"], "mmap1-processes");
    assert_eq!(
        (&line["stands_in"], &line["after"]),
        (&"freebsd-di".into(), &"freebsd-epoch".into())
    );
    assert!(
        (number(&line["points"][0]["predicted"]) / 2e5 - 1.0).abs() < 0.02,
        "{line}"
    );
    assert_eq!(line["measured_change"], 1.6);
    assert!(number(&line["change"]) > 0.9, "{line}");
    for (arguments, why) in [
        (
            format!("predict --measured {file} --vm scalevm"),
            "expected the one workload",
        ),
        (
            format!("predict mmap9 --measured {file} --vm scalevm"),
            "unknown workload mmap9",
        ),
        (
            format!("predict mmap1 --measured {file}.missing --vm scalevm"),
            "table.txt.missing",
        ),
    ] {
        let said = failure(&arguments, 2);
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    }
    let bad = folder.write("bad.txt", "1 10\n2\n");
    let said = failure(&format!("predict mmap1 --measured {bad} --vm scalevm"), 2);
    assert!(said.contains("bad.txt: line 2: expected tasks"), "{said}");
}

/// The format of published curves names kernels and machines; what stands in for them is known.
#[test]
fn a_file_in_the_published_format_is_predicted() {
    let folder = Scratch::folder("predict-published");
    let published = include_str!("../../studies/published/macy-munmap.toml");
    let file = folder.write("mine.toml", published);
    let theirs = json(&text(&output("predict macy-munmap --json").stdout));
    let mine = json(&text(
        &output(&format!("predict --measured {file} --json")).stdout,
    ));
    assert_eq!(theirs[0]["points"], mine[0]["points"]);
    assert_eq!(mine[0]["curve"], "mine/mmap1-processes");
    let named =
        format!("predict --measured {file} --vm scalevm --machine freebsd-96 --list --json");
    assert_eq!(json(&success(&named))[0]["stands_in"], "scalevm");
}

#[test]
fn without_a_fit_there_is_no_prediction() {
    let folder = Scratch::folder("predict-fit");
    let file = folder.write("fast.txt", "1 1e12\n2 2e12\n");
    let predict = format!("predict mmap1 --measured {file} --vm scalevm --topology 1x2x1");
    let (shown, _) = exits(3, &mut scalevm(&predict));
    assert!(
        shown.contains("not fitted: one task does not reach 1000000000000"),
        "{shown}"
    );
    assert!(shown.contains("0 of 1 curve predicted"), "{shown}");
    // It does not end others.
    let published = include_str!("../../studies/published/macy-munmap.toml");
    let (source, curve) = published.split_once("[[curve]]").expect("a curve");
    let fast = curve
        .replace("mmap1-processes", "fast")
        .replace("[[12, 1_719_430]", "[[12, 1e12]");
    let both = folder.write(
        "both.toml",
        &format!("{source}[[curve]]{curve}\n[[curve]]{fast}"),
    );
    let lines = json(&text(
        &output(&format!("predict --measured {both} --json")).stdout,
    ));
    assert!(
        number(&lines[0]["points"][0]["predicted"]) > 0.0,
        "{lines:?}"
    );
    assert!(
        lines[1]["not_predicted"]
            .as_str()
            .is_some_and(|why| why.contains("not fitted"))
    );
    let run = "run mmap1 --topology 1x1x1 --seeds 1 --duration 0.001 --alone 1e12";
    let (_, said) = exits(3, &mut scalevm(run));
    assert!(
        said.contains("not fitted: one task does not reach"),
        "{said}"
    );
}
