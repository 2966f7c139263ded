//! `scalevm campaign`, here and on a cluster of Slurm's.

mod cluster;
mod stand_in;
#[path = "../support/mod.rs"]
mod support;

use cluster::Cluster;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use support::command::{exits, failure, json, run, scalevm, success};
use support::scratch::Scratch;

/// Of short runs.
const PLAN: &str = r#"
[[part]]
command = "run"
args = ["mmap1", "page_fault1"]
vm = ["freebsd-di", "scalevm"]
machine = "pc-16c32t"
tasks = [1, 2]
seed = [1, 2]
seeds = 1
duration = 0.001
"#;

/// The bytes of a file.
fn bytes(path: &str) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn a_plan_is_listed_run_in_parts_and_collected() {
    let place = Scratch::folder("campaign");
    let plan = place.write("plan.toml", PLAN);
    let list = success(&format!("campaign run {plan} --list"));
    assert_eq!(list.lines().count(), 16);
    let first = list.lines().next().expect("a line");
    assert_eq!(
        first.split_whitespace().collect::<Vec<_>>().join(" "),
        "0 missing run mmap1 --vm=freebsd-di --machine=pc-16c32t --tasks=1 --seed=1 --seeds=1 \
         --duration=0.001 --json"
    );
    let part = format!("campaign run {plan} --shard 2/3 --jobs 1");
    let (_, said) = exits(0, &mut scalevm(&part));
    assert!(
        said.starts_with("scalevm: 5 points done; results are in "),
        "{said}"
    );
    let list = success(&format!("campaign run {plan} --list"));
    assert_eq!(list.matches(" done ").count(), 5);
    let early = failure(&format!("campaign collect {plan}"), 2);
    assert_eq!(
        early,
        "scalevm: 11 of 16 points have no result, the first of them 0\n"
    );
    success(&format!("campaign run {plan}"));
    let all = bytes(&place.inside("plan.jsonl"));
    let lines = json(std::str::from_utf8(&all).expect("UTF-8"));
    let of_kind = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!(
        (of_kind("point"), of_kind("sample"), of_kind("summary")),
        (16, 16, 16)
    );
    // The results are a store, the collected file is one of results, and another run gives the same
    // bytes.
    let history = success(&format!(
        "history {} --workload mmap1",
        place.inside("plan.results")
    ));
    assert!(history.contains("mmap1"), "{history}");
    let (again, out) = (place.inside("again"), place.inside("again.jsonl"));
    success(&format!(
        "campaign run {plan} --results {again} --out {out} --jobs 3"
    ));
    assert_eq!(bytes(&out), all);
    let one = fs::read_dir(&again)
        .expect("a directory")
        .next()
        .expect("a file");
    let one = one.expect("a file").path();
    let mut damaged = fs::read(&one).expect("a file");
    *damaged.last_mut().expect("not empty") = b' ';
    fs::write(&one, damaged).expect("written");
    let said = failure(
        &format!("campaign collect {plan} --results {again} --out {out}"),
        2,
    );
    assert!(
        said.contains("damaged") && said.lines().count() == 1,
        "{said}"
    );
    assert_eq!(bytes(&out), all, "what was there stays");
}

/// Instructions that round otherwise, which another computer may have, are in no result.
#[test]
fn results_do_not_depend_on_the_processor() {
    let place = Scratch::folder("campaign-processor");
    let plan = place.write("plan.toml", PLAN);
    success(&format!("campaign run {plan}"));
    let out = place.inside("plain.jsonl");
    let mut plain = scalevm(&format!(
        "campaign run {plan} --results {} --out {out}",
        place.inside("plain")
    ));
    plain.env(
        "GLIBC_TUNABLES",
        "glibc.cpu.hwcaps=-FMA,-FMA4,-AVX2,-AVX,-AVX512F",
    );
    exits(0, &mut plain);
    assert_eq!(bytes(&out), bytes(&place.inside("plan.jsonl")));
}

#[test]
fn a_point_that_makes_no_sense_is_named_before_any_runs() {
    let place = Scratch::folder("campaign-bad");
    for (plan, why) in [
        (
            "[[part]]\ncommand = \"run\"\nargs = \"mmap1\"",
            "point 0, `run mmap1 --json`: only simulated runs",
        ),
        (
            "[[part]]\ncommand = \"run\"\nargs = \"mmap1\"\non = \"sim\"\ntaks = 3",
            "--taks",
        ),
        (
            "[[part]]\ncommand = \"doctor\"",
            "expected a command that simulates, e.g. run",
        ),
        ("part = 3", "`part` is not a list of parts"),
    ] {
        let path = place.write("plan.toml", plan);
        let said = failure(&format!("campaign run {path}"), 2);
        assert!(
            said.contains(why) && said.contains("plan.toml") && said.lines().count() == 1,
            "{said}"
        );
        assert!(!Path::new(&place.inside("plan.results")).exists());
    }
    assert!(failure("campaign run /not/there.toml", 2).contains("/not/there.toml"));
}

#[test]
fn a_failed_point_is_told_and_the_others_are_kept() {
    let place = Scratch::folder("campaign-failed");
    // A machine's file is looked for in the plan's directory, when the point runs.
    let plan = "[[part]]\ncommand = \"run\"\nargs = \"mmap1\"\nmachine = [\"./none.toml\", \
                \"pc-16c32t\"]\n\
                seeds = 1\nduration = 0.001";
    let path = place.write("plan.toml", plan);
    let (_, stderr) = run(4, &["campaign", "run", &path]);
    assert!(
        stderr.contains("scalevm: 1 point done, 1 failed; results"),
        "{stderr}"
    );
    assert!(
        stderr.starts_with("scalevm: point 0 failed: exit status: 2: "),
        "{stderr}"
    );
    assert!(stderr.contains("none.toml"), "{stderr}");
}

/// A cluster of three nodes runs 80 points; one of the nodes dies in the midst.
#[test]
fn slurm_runs_a_campaign_of_which_a_node_dies() {
    let place = Scratch::folder("campaign-slurm");
    let plan = "[[part]]\ncommand = \"run\"\nargs = [\"mmap1\", \"brk1\"]\nvm = [\"freebsd-di\", \
                \"scalevm\"]\n\
                machine = \"pc-16c32t\"\ntasks = 2\nseeds = 1\nduration = 0.002\nseed = [";
    let seeds: Vec<String> = (1..=20).map(|seed| seed.to_string()).collect();
    let plan = place.write("plan.toml", &format!("{plan}{}]", seeds.join(",")));
    let cluster = Cluster::start(&place.inside("cluster"), 3);
    let mut submit = scalevm(&format!("campaign run {plan} --engine slurm --shards 8"));
    let mut submit = cluster
        .environment(&mut submit)
        .spawn()
        .expect("the command starts");
    let results = place.inside("plan.results");
    let done = || {
        fs::read_dir(&results).map_or(0, |names| {
            let ends =
                |name: fs::DirEntry| name.path().extension().is_some_and(|end| end == "jsonl");
            names.flatten().map(ends).filter(|&is| is).count()
        })
    };
    let begun = Instant::now();
    while done() < 10 {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "{}",
            cluster.logs()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(
        cluster.kill_a_busy_node(),
        "a node runs something: {}",
        cluster.logs()
    );
    let left = 80 - done();
    let status = submit.wait().expect("it ends");
    assert!(status.success(), "{status}: {}", cluster.logs());
    assert!(left > 10, "only {left} points were left when the node died");
    assert!(cluster.was_requeued(), "{}", cluster.logs());
    let (here, out) = (place.inside("here"), place.inside("here.jsonl"));
    success(&format!("campaign run {plan} --results {here} --out {out}"));
    assert_eq!(bytes(&out), bytes(&place.inside("plan.jsonl")));
}
