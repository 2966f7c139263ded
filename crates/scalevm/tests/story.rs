//! The main job: no arguments, and everything happens.

mod support;

use support::command::{exits, scalevm};
use support::scratch::Scratch;

#[test]
fn the_story_is_told_and_its_results_are_kept() {
    let folder = Scratch::folder("story");
    let (text, _) = exits(0, scalevm("").current_dir(&folder.0));
    for build in ["os", "freebsd-di", "freebsd-epoch", "scalevm"] {
        let peak = format!("{build}: peak ");
        assert!(text.contains(&peak), "no {peak} in {text}");
    }
    // Why: the mutex is taken at both ends of each munmap, and epochs do without.
    let lock = |build: &str, class: &str| {
        let found = text
            .lines()
            .find(|line| line.contains(build) && line.contains(class));
        found.map(str::to_owned)
    };
    let mutex = lock("freebsd-di", "invl gen").expect("the mutex is in the table");
    assert!(
        mutex.contains("2.0") && mutex.contains("all processes"),
        "{mutex}"
    );
    assert_eq!(lock("freebsd-epoch", "invl gen"), None);
    assert!(lock("freebsd-epoch", "swap devices").is_some());
    assert_eq!(lock(" scalevm ", "all processes"), None);
    // And on 96 simulated CPUs: each build's bottleneck.
    let bottleneck = |build: &str, what: &str| {
        let line = format!("{build}, 96 processes: bottleneck: ");
        let found = text.lines().find(|text| text.starts_with(&line));
        assert!(found.is_some_and(|found| found.contains(what)), "{found:?}");
    };
    bottleneck("freebsd-di", "invl gen");
    bottleneck("freebsd-epoch", "swap");
    bottleneck("scalevm", "nothing");
    let results = stats::record::read(&folder.0.join("scalevm-story.jsonl").to_string_lossy());
    let results = results.expect("a file of records");
    let runs = stats::record::runs(&results);
    assert!(runs.len() >= 8 + 21 && runs.iter().all(|run| run.complete));
    let page = std::fs::read_to_string(folder.0.join("scalevm-story.html")).expect("the page");
    for part in ["freebsd-di", "baselines::freebsd::di::begin", "invl gen"] {
        assert!(page.contains(part), "no {part} in the page");
    }
}
