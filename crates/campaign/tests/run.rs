//! Campaigns with a shell for the command: results are the same bytes however they were run.

use bench::Workers;
use campaign::{Error, Outcome, Plan, Results, Runner, Shard, State, collect, run};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tempfile::TempDir;

const NEVER: &(dyn Fn() -> bool + Sync) = &|| false;

/// A plan of points `say N`, and a command.
struct World {
    directory: TempDir,
    program: PathBuf,
    plan: Plan,
}

impl World {
    /// `script` is what the command does; its third argument is the number of the point, from 1.
    fn new(points: usize, script: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join("command");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("made executable");
        let plan = directory.path().join("plan.toml");
        let numbers: Vec<String> = (1..=points).map(|number| format!("\"{number}\"")).collect();
        let text = format!(
            "[[part]]\ncommand = \"say it\"\nargs = [{}]\n",
            numbers.join(",")
        );
        fs::write(&plan, text).expect("written");
        let plan = Plan::read(&plan).expect("a plan");
        World {
            directory,
            program,
            plan,
        }
    }

    fn results(&self, name: &str) -> Results {
        Results::new(self.directory.path().join(name), "build")
    }

    fn run(&self, results: &Results, shard: &str, jobs: usize) -> Outcome {
        self.run_until(results, shard, jobs, NEVER).expect("run")
    }

    fn run_until(
        &self,
        results: &Results,
        shard: &str,
        jobs: usize,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Outcome, Error> {
        run(&Runner {
            plan: &self.plan,
            results,
            program: &self.program,
            shard: shard.parse().expect("a shard"),
            workers: Workers {
                at_once: jobs,
                stop,
            },
            progress: &(),
        })
    }

    fn collected(&self, results: &Results) -> Vec<u8> {
        let (bytes, _) = collect(&self.plan, results).expect("all are there");
        bytes
    }
}

#[test]
fn bytes_are_the_same_however_points_are_run() {
    let world = World::new(23, "echo \"{\\\"said\\\": $3}\"");
    let alone = world.results("alone");
    assert_eq!(world.run(&alone, "1/1", 1).done, 23);
    let bytes = world.collected(&alone);
    let text = String::from_utf8(bytes.clone()).expect("UTF-8");
    let said = text.lines().skip(1).step_by(2);
    assert!(
        said.eq((1..=23).map(|number| format!("{{\"said\": {number}}}"))),
        "{text}"
    );
    let many = world.results("many");
    world.run(&many, "1/1", 4);
    assert_eq!(world.collected(&many), bytes);
    let shards = world.results("shards");
    for shard in ["5/5", "1/5", "3/5", "2/5"] {
        world.run(&shards, shard, 2);
    }
    let incomplete = collect(&world.plan, &shards);
    let why = incomplete.expect_err("a shard is missing").to_string();
    assert_eq!(why, "4 of 23 points have no result, the first of them 3");
    world.run(&shards, "4/5", 1);
    assert_eq!(world.collected(&shards), bytes);
    let beside = world.results("beside");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| world.run(&beside, "1/1", 2));
        }
    });
    assert_eq!(world.collected(&beside), bytes);
}

#[test]
fn only_what_failed_runs_again() {
    let world = World::new(
        6,
        "echo ran >> ran; [ $3 = 4 ] && [ ! -e mended ] && echo 'no luck' >&2 && exit 4; echo $3",
    );
    let results = world.results("results");
    let outcome = world.run(&results, "1/1", 2);
    assert_eq!(outcome.done, 5);
    assert_eq!(outcome.failed, [(3, "exit status: 4: no luck".into())]);
    let state = results.state(&world.plan.points[3]);
    assert_eq!(state, State::Failed("exit status: 4: no luck".into()));
    fs::write(world.directory.path().join("mended"), "").expect("written");
    let outcome = world.run(&results, "1/1", 2);
    assert_eq!((outcome.done, outcome.failed.len()), (6, 0));
    let ran = fs::read_to_string(world.directory.path().join("ran")).expect("written");
    assert_eq!(ran.lines().count(), 7);
}

#[test]
fn failures_are_in_the_order_of_the_points() {
    let world = World::new(4, "sleep 0.$((4 - $3)); exit 4");
    let outcome = world.run(&world.results("results"), "1/1", 4);
    let failed = outcome.failed.iter().map(|(number, _)| *number);
    assert!(failed.eq(0..4), "{outcome:?}");
}

#[test]
fn a_command_runs_one_point_at_once_itself() {
    let world = World::new(1, "echo \"at once: $SCALEVM_JOBS\"");
    let results = world.results("results");
    assert_eq!(world.run(&results, "1/1", 2).done, 1);
    let text = String::from_utf8(world.collected(&results)).expect("UTF-8");
    assert!(text.ends_with("at once: 1\n"), "{text}");
}

#[test]
fn a_finding_is_a_result() {
    let world = World::new(3, "echo $3; [ $3 != 2 ]");
    let results = world.results("results");
    assert_eq!(world.run(&results, "1/1", 1).done, 3);
    let (_, exit) = collect(&world.plan, &results).expect("all are there");
    assert_eq!(exit, 1);
}

#[test]
fn a_point_that_is_killed_is_tried_again_and_leaves_nothing_of_it() {
    let world = World::new(
        1,
        "echo half; [ -e again ] || { touch again; kill -9 $$; }; echo whole",
    );
    let results = world.results("results");
    assert_eq!(world.run(&results, "1/1", 1).done, 1);
    let text = String::from_utf8(world.collected(&results)).expect("UTF-8");
    assert!(text.ends_with("}\nhalf\nwhole\n"), "{text}");
    let world = World::new(1, "kill -9 $$");
    let outcome = world.run(&world.results("results"), "1/1", 1);
    assert_eq!(outcome.failed, [(0, "signal: 9 (SIGKILL): ".into())]);
}

#[test]
fn who_is_told_to_stop_leaves_whole_results() {
    let world = World::new(40, "echo $3; sleep 0.05");
    let results = world.results("results");
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Relaxed) > 60;
    let outcome = world.run_until(&results, "1/1", 2, &stop).expect("run");
    assert!(outcome.done < 40, "{outcome:?}");
    assert_eq!(outcome.done, results.done(&world.plan));
    let names = fs::read_dir(results.directory()).expect("a directory");
    assert_eq!(names.count(), outcome.done, "nothing else is there");
    for point in &world.plan.points {
        if results.state(point) == State::Done {
            results.read(point).expect("whole");
        }
    }
    world.run(&results, "1/1", 4);
    world.collected(&results);
}

#[test]
fn a_command_that_is_not_there_is_named() {
    let mut world = World::new(2, "");
    world.program = "/not/there".into();
    let results = world.results("results");
    let error = world
        .run_until(&results, "1/1", 2, NEVER)
        .expect_err("no command");
    assert!(error.to_string().starts_with("/not/there: "), "{error}");
    assert_eq!(Shard::WHOLE.to_string(), "1/1");
}
