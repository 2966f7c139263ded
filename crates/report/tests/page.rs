//! A page's contents, and that text from files stays data.

use report::{Page, Source};

fn data(name: &str) -> Source {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    Source::read(&format!("{folder}/{name}.jsonl")).expect("a sound file")
}

fn html(names: &[&str]) -> String {
    let sources: Vec<Source> = names.iter().map(|name| data(name)).collect();
    Page::new(&sources).html()
}

fn parse(text: &str) -> Result<Source, String> {
    Source::parse("f", text.as_bytes()).map_err(|error| error.to_string())
}

/// How often `part` occurs.
fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

/// A `sample` line of a workload.
fn sample(workload: &str, tasks: u32, rate: f64) -> String {
    let line = serde_json::json!({
        "kind": "sample", "workload": workload, "on": "os", "vm": null, "tasks": tasks,
        "mode": "threads", "profile": null, "topology": null, "seed": null,
        "unit": "operations/s", "sample": 1, "min": rate, "max": rate,
        "total": rate * f64::from(tasks), "average": rate, "seconds": 1.0,
    });
    format!("{line}\n")
}

#[test]
fn the_verdict_of_runs_in_turn_comes_first() {
    let sources = [data("before"), data("after"), data("paired")];
    let page = Page::new(&sources);
    let verdict = page.verdict();
    assert!(
        verdict.starts_with(
            "scalevm is faster: 3.25 times the rate of freebsd-di (95 % \
                                 interval 2.39 to 3.80) – mmap1"
        ),
        "{verdict}"
    );
    assert_eq!(
        page.sections(),
        ["verdict", "curves", "comparison", "machine"]
    );
    let html = page.html();
    let (heading, table) = (html.find("<h1>").unwrap(), html.find("<table").unwrap());
    assert!(heading < table, "the verdict stands before all numbers");
    assert_eq!(
        count(&html, "Difference at 95.0% confidence"),
        2,
        "ministat's tables"
    );
    assert!(html.contains("6 + 6, interleaved") && html.contains("5 + 5, not interleaved"));
}

#[test]
fn the_first_file_is_before_and_the_last_is_after() {
    let forth = [data("before"), data("after")];
    let back = [data("after"), data("before")];
    let (forth, back) = (Page::new(&forth), Page::new(&back));
    assert!(
        forth
            .verdict()
            .starts_with("scalevm, after.jsonl is faster: "),
        "{}",
        forth.verdict()
    );
    assert!(
        back.verdict()
            .starts_with("freebsd-di, before.jsonl is slower: "),
        "{}",
        back.verdict()
    );
}

#[test]
fn a_file_beside_itself_is_no_faster() {
    let twice = [data("before"), data("before")];
    let page = Page::new(&twice);
    let verdict = page.verdict();
    assert!(
        !verdict.contains("faster:") && !verdict.contains("slower:"),
        "{verdict}"
    );
    let html = page.html();
    assert!(
        html.contains("before.jsonl (1)") && html.contains("before.jsonl (2)"),
        "told apart"
    );
}

#[test]
fn samples_of_one_run_are_no_verdict() {
    let sources = [data("os"), data("os")];
    let page = Page::new(&sources);
    assert!(
        page.verdict()
            .starts_with("None of 4 comparisons is judged: they have too few runs."),
        "{}",
        page.verdict()
    );
    assert!(
        page.html()
            .contains("samples of one run are not independent runs")
    );
}

#[test]
fn many_files_have_one_warning_of_a_kind_and_say_what_is_not_judged() {
    let text = include_str!("data/os.jsonl");
    let file = |number: usize| {
        // Each two files have a workload of their own.
        let text = text.replace("mmap1", &format!("w{}", number / 2));
        let name = format!("{number}.jsonl");
        Source::parse(&name, text.as_bytes()).expect("a sound file")
    };
    let mut sources: Vec<Source> = (0..36).map(file).collect();
    let page = Page::new(&sources);
    // 18 workloads with four numbers of threads.
    let none = "None of 72 comparisons is judged: they have too few runs.";
    assert_eq!(page.verdict(), none);
    let html = page.html();
    assert!(html.contains("36 files, most of all "), "one for all files");
    let warnings = html.split("id=\"warnings\"").nth(1).expect("warnings");
    let warnings = warnings.split("</ul>").next().expect("a list");
    assert!(count(warnings, "<li>") <= 6, "{warnings}");
    // A pair that is judged is not the verdict on all of them.
    sources.push(data("paired"));
    let html = Page::new(&sources).html();
    let open = html.find("72 of 73 comparisons are not judged: they have too few runs.");
    let judged = html.find("scalevm is faster: 3.25 times");
    assert!(open.is_some() && open < judged, "{open:?} {judged:?}");
}

#[test]
fn a_simulated_pair_says_what_the_model_cannot_tell() {
    let [a, b] = [1000.0, 1128.0].map(|rate| vec![rate; 6]);
    let line = |simulated: bool| {
        let line = serde_json::json!({
            "kind": "verdict", "about": "w on sim", "unit": "1/s", "interleaved": true,
            "simulated": simulated, "minimum_effect": 0.5,
            "a": { "name": "a", "runs": a }, "b": { "name": "b", "runs": b },
        });
        let sources = [parse(&line.to_string()).expect("a comparison")];
        Page::new(&sources).verdict().to_owned()
    };
    assert_eq!(
        line(true),
        "The model cannot tell a and b apart: they differ by less than 1.5 times (95 % interval \
         1.13 to 1.13) – w on sim."
    );
    assert!(line(false).starts_with("No difference shown"));
}

#[test]
fn a_profile_names_what_holds_the_tasks_up() {
    let sources = [data("os"), data("profile")];
    let page = Page::new(&sources);
    assert_eq!(
        page.verdict(),
        "mmap1 on os, 4 threads: 46 % of task time waits for mmap_lock, taken for writing in \
         __vm_munmap (68 % of it there)."
    );
    assert_eq!(
        page.sections(),
        ["verdict", "curves", "locks", "flames", "machine"]
    );
    let html = page.html();
    assert!(
        html.contains("From 1 thread to 4 threads: 0.55 times the rate"),
        "the difference"
    );
    assert!(
        html.contains("falls to 309.9 k with 4, 47 % of the peak"),
        "the collapse"
    );
    // Busy time of both, waits of one, and the change.
    assert_eq!(count(&html, "<figure class=\"flame\">"), 4);
    assert!(
        html.contains("27,554") && html.contains("Spin share"),
        "the locks"
    );
    assert!(html.contains("machine was not quiet") && html.contains("up to 4 tasks shared 2 CPUs"));
    assert!(
        html.contains("scalevm sweep mmap1 --threads --on os --cpus 1,2,3,4"),
        "the command"
    );
    assert!(
        html.contains("not known: /sys/devices/system/cpu/cpufreq: empty"),
        "the governor"
    );
}

/// `sample` lines of `os` or `hosted` at several numbers of tasks.
fn curve(workload: &str, on: &str, vm: Option<&str>) -> String {
    let line = |&tasks: &u32| {
        let mut line: serde_json::Value =
            serde_json::from_str(&sample(workload, tasks, 100.0)).unwrap();
        line["on"] = on.into();
        line["vm"] = vm.into();
        format!("{line}\n")
    };
    [1, 2, 4].iter().map(line).collect()
}

#[test]
fn a_system_has_one_colour_in_all_charts() {
    let lines = [
        curve("mmap1", "os", None),
        curve("mmap1", "hosted", Some("scalevm")),
        curve("brk1", "hosted", Some("scalevm")),
        curve("brk1", "hosted", Some("freebsd-di")),
        curve("brk1", "os", None),
    ];
    let sources = [parse(&lines.concat()).unwrap()];
    let html = Page::new(&sources).html();
    for (system, colour) in [("os", 0), ("scalevm", 1), ("freebsd-di", 2)] {
        let mark =
            format!("<span class=\"swatch s{colour}\" aria-hidden=\"true\"></span>{system}<");
        let any = format!("aria-hidden=\"true\"></span>{system}<");
        assert!(count(&html, &any) > 0, "{html}");
        assert_eq!(count(&html, &mark), count(&html, &any), "{system}");
    }
    assert!(html.contains("scalevm, 1 task: ") && !html.contains(" 1 tasks"));
}

#[test]
fn charts_name_the_unit_of_their_axis() {
    let html = html(&["os"]);
    assert_eq!(
        count(&html, "y=\"15\">operations/s</text>"),
        2,
        "on both scales"
    );
}

#[test]
fn profiles_of_unlike_things_are_not_compared() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/profile.jsonl"
    ));
    let line = text.unwrap().lines().next().unwrap().to_owned();
    let mut other: serde_json::Value = serde_json::from_str(&line).unwrap();
    for (name, value) in [
        ("on", "sim"),
        ("mode", "processes"),
        ("profile", "freebsd-96"),
        ("topology", "2x24x2"),
        ("vm", "scalevm"),
    ] {
        other[name] = value.into();
    }
    other["tasks"] = 24.into();
    let sources = [parse(&format!("{line}\n{other}\n")).unwrap()];
    let html = Page::new(&sources).html();
    assert!(
        !html.contains("Change: ") && !html.contains("times the rate"),
        "no difference"
    );
    let warning = "Profiles of unlike things are not compared: os against freebsd-96 2x24x2; 1 \
                   thread against 24 processes.";
    assert!(html.contains(warning), "{html}");
    let alike = format!("{line}\n{}\n", line.replace("\"tasks\":1,", "\"tasks\":2,"));
    let sources = [parse(&alike).unwrap()];
    let html = Page::new(&sources).html();
    assert!(html.contains("Change: ") && html.contains("From 1 thread to 2 threads"));
    assert!(!html.contains("unlike"));
}

#[test]
fn less_is_better_where_the_numbers_are_times() {
    let runs = |from: f64| [from, from + 0.01, from + 0.02, from + 0.03, from + 0.04];
    let mut line = serde_json::json!({
        "kind": "verdict", "about": "files of times", "unit": "s", "better": "lower",
        "interleaved": false, "minimum_effect": 0.01,
        "a": { "name": "old", "runs": runs(2.0) }, "b": { "name": "new", "runs": runs(1.0) },
    });
    let verdict = |line: &serde_json::Value| {
        let sources = [parse(&format!("{line}\n")).unwrap()];
        Page::new(&sources).verdict().to_owned()
    };
    let said = verdict(&line);
    assert!(
        said.starts_with("new is faster: 0.50 times the time of old"),
        "{said}"
    );
    line.as_object_mut().unwrap().remove("better");
    let said = verdict(&line);
    assert!(
        said.starts_with("new is slower: 0.50 times the rate of old"),
        "{said}"
    );
}

#[test]
fn simulated_curves_have_points_laws_and_a_command() {
    let html = html(&["sim"]);
    // Three systems at six numbers of tasks, on two scales.
    assert_eq!(count(&html, "class=\"dot\""), 2 * 3 * 6);
    assert_eq!(count(&html, "class=\"law\""), 2 * 3);
    assert!(html.contains("over simulated runs, a seed each"));
    assert!(html.contains("bottleneck: the lock &quot;invl gen&quot;"));
    assert!(html.contains("--vm freebsd-di,freebsd-epoch,scalevm --cpus 1,4,12,24,48,96 --seed 1"));
}

#[test]
fn text_of_files_is_never_markup() {
    let evil = "<script>alert(1)</script><img src=x onerror='alert(2)'>\"]]>";
    let lines = sample(evil, 1, 100.0) + &sample(evil, 2, 120.0) + &sample(evil, 4, 90.0);
    let profile = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/profile.jsonl"
    ));
    let quoted = serde_json::to_string(evil).unwrap();
    let quoted = quoted.trim_matches('"');
    let names = [
        "mmap1",
        "mmap_lock",
        "__vm_munmap",
        "cpu-clock",
        "samples with",
        "Linux",
        "scalevm",
    ];
    let mut profile = profile.unwrap();
    for name in names {
        profile = profile.replace(name, quoted);
    }
    let sources = [parse(&(lines + &profile)).unwrap()];
    let html = Page::new(&sources).html();
    assert!(html.contains("&lt;script&gt;alert(1)"), "it is shown");
    assert!(
        !html.contains("<script>alert") && !html.contains("<img"),
        "and it is text"
    );
    assert_eq!(count(&html, "<script"), 1, "one script, ours");
}

/// A profile as JSON.
fn profile() -> serde_json::Value {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/profile.jsonl"
    ));
    serde_json::from_str(text.unwrap().lines().last().unwrap()).unwrap()
}

fn page_of(profile: &serde_json::Value) -> String {
    Page::new(&[parse(&format!("{profile}\n")).unwrap()]).html()
}

#[test]
fn holders_of_locks_have_a_table() {
    let mut value = profile();
    assert!(
        !page_of(&value).contains("Part of waiting"),
        "an older profile"
    );
    value["holders"] = serde_json::json!([{
        "lock": "mmap_lock", "process": "<agent>", "watched": false, "function": "show_smap",
        "kind": "rwsem read", "holds": 1234, "total": 8.1, "mean": 0.0066, "p99": 0.0071,
        "worst": 0.0123, "waited": 4.0, "share": 0.93
    }]);
    let html = page_of(&value);
    for part in [
        "Part of waiting",
        "show_smap",
        "&lt;agent&gt; (not watched)",
        "1,234",
        "6.60 ms",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn waits_over_time_are_a_heat_map() {
    let mut value = profile();
    assert!(
        !page_of(&value).contains("waits over time"),
        "an older profile"
    );
    value["seconds"] = 1.2.into();
    // A stall of 0.1 s in 0.2 s: two tasks wait in every other slice.
    let stalls: Vec<f64> = (0..240)
        .map(|slice| f64::from(slice / 20 % 2) * 0.01)
        .collect();
    value["timeline"] = serde_json::json!({"slice": 0.005, "rows": [
        {"name": "mmap_<lock>", "seconds": stalls},
        {"name": "[idle]", "seconds": []},
    ]});
    let html = page_of(&value);
    for part in [
        "waits over time; a column is 10.0 ms",
        "mmap_&lt;lock&gt;",
        "at most 2.00 tasks at a time",
        "<title>100 ms: 2.00 tasks</title>",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(!html.contains("<title>0 s:") && !html.contains("[idle]"));
}

#[test]
fn the_page_needs_nothing_else() {
    let html = html(&["os", "sim", "profile", "before", "after", "paired"]);
    for reference in [
        "http://", "https://", "url(", "@import", " src=", "onclick", "onload",
    ] {
        assert!(!html.contains(reference), "{reference}");
    }
    assert!(html.contains("default-src 'none'") && html.contains("<html lang=\"en\">"));
}

#[test]
fn small_stacks_do_not_make_a_large_page() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/data/profile.jsonl"
    ));
    let text = text.unwrap();
    let mut value: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    for index in 0..20_000 {
        let stack = format!("root;a{};b{index};c{index}", index % 50);
        value["busy"][stack] = 1e-6.into();
    }
    let with = [parse(&format!("{value}\n")).unwrap()];
    let html = Page::new(&with).html();
    assert!(html.len() < 150_000, "{} bytes", html.len());
}

#[test]
fn bad_files_are_named_with_their_line() {
    let reason = |text: &str| parse(text).expect_err(text);
    assert_eq!(
        reason(""),
        "f: contains no results, comparisons, profiles or reproduced figures"
    );
    assert_eq!(
        reason("{\"kind\":\"progress\"}\n"),
        "f: contains no results, comparisons, profiles or reproduced figures"
    );
    assert!(reason("average 12\n").starts_with("f:1: "), "no JSON");
    assert!(reason("[1]\n").starts_with("f:1: "), "no object");
    let good = sample("w", 1, 1.0);
    let bad = format!("{good}\n{{\"kind\":\"sample\"}}\n");
    assert_eq!(reason(&bad), "f:3: missing field `sample`");
    assert!(reason(&format!("{good}{{\"kind\":\"profile\"}}\n")).starts_with("f:2: missing field"));
    assert!(reason(&format!("{good}\u{0}\n")).starts_with("f:2: "));
}

#[test]
fn a_line_cut_short_in_writing_is_left_out() {
    let whole = sample("w", 1, 1.0);
    let half = &whole[..whole.len() / 2];
    let source = parse(&format!("{whole}{half}")).unwrap();
    assert_eq!(
        (source.records.len(), source.notes.as_slice()),
        (1, &["f:2: cut short; left out".to_owned()][..])
    );
    assert!(
        parse(half).is_err(),
        "nothing but half a line is no file of results"
    );
}

#[test]
fn each_case_study_has_a_table() {
    let source = data("reproduction");
    let sources = [source];
    let page = Page::new(&sources);
    assert_eq!(
        page.verdict(),
        "1 of 2 simulated figures with a published number, 2 of 2 statements and aims, \
         1 of 1 checks of the instrument hold (case studies 000 and 004)."
    );
    assert_eq!(page.sections(), ["verdict", "studies", "machine"]);
    let html = page.html();
    assert_eq!(count(&html, "<h3>Case study "), 2);
    assert!(html.contains("Case study 000: 1 of 2 hold"), "{html}");
    assert!(
        html.contains("Checks of the instrument, which hold by construction: 1 of 1 hold"),
        "{html}"
    );
    // Four have a published figure: a bar with its band, the figure and its reproduction.
    let bars = [
        "class=\"ratio\"",
        "class=\"within\"",
        "class=\"one\"",
        "<circle ",
    ];
    assert_eq!(bars.map(|part| count(&html, part)), [4; 4]);
    assert!(html.contains("1.719 M/s") && html.contains("in words"));
    assert!(
        html.contains("our mmap and munmap are short"),
        "why it misses"
    );
    let cut = parse(r#"{"kind":"reproduction","system":"S3"}"#);
    assert!(cut.unwrap_err().starts_with("f:1: "));
}

/// A simulated run: a sample for each of six seeds, and the summary.
fn simulated(vm: &str, rate: f64) -> String {
    const SEEDS: u32 = 6;
    let mut line: serde_json::Value =
        serde_json::from_str(&sample("mmap1", 4, rate / 4.0)).unwrap();
    for (name, value) in [
        ("on", "sim".into()),
        ("vm", vm.into()),
        ("profile", "freebsd-96".into()),
        ("topology", "2x24x2".into()),
        ("seed", serde_json::Value::from(1)),
    ] {
        line[name] = value;
    }
    let mut text = String::new();
    for seed in 1..=SEEDS {
        line["sample"] = seed.into();
        text += &format!("{line}\n");
    }
    line["kind"] = "summary".into();
    line["sample"] = SEEDS.into();
    for (name, value) in [
        ("min", rate),
        ("max", rate),
        ("average", rate),
        ("total", rate * f64::from(SEEDS)),
        ("stddev", 0.0),
    ] {
        line[name] = value.into();
    }
    text + &format!("{line}\n")
}

#[test]
fn what_the_model_cannot_tell_is_not_called_the_same() {
    let verdict = |ratio: f64| {
        let text = simulated("freebsd-di", 1000.0) + &simulated("scalevm", ratio * 1000.0);
        let sources = [parse(&text).unwrap()];
        let page = Page::new(&sources);
        (page.verdict().to_owned(), page.html())
    };
    let (said, html) = verdict(1.128);
    assert!(
        said.starts_with(
            "The model cannot tell freebsd-di and scalevm apart: they differ by less than 1.5 times"
        ),
        "{said}"
    );
    assert!(html.contains("the model cannot tell less than 1.5 times"));
    assert!(html.contains("The model ranks rates from 1.5 times apart on."));
    assert!(!html.contains("no difference shown"));
    let (said, _) = verdict(1.6);
    assert!(said.starts_with("scalevm is faster: 1.60 times"), "{said}");
}

#[test]
fn control_characters_of_files_are_seen_as_escapes() {
    let lines = sample("a\u{1b}[31m\u{1}\u{9b}\u{202e}b", 1, 100.0) + &sample("x", 1, 5.0);
    let html = Page::new(&[parse(&lines).unwrap()]).html();
    assert!(
        html.contains("a\\u001b[31m\\u0001\\u009b\\u202eb"),
        "{html}"
    );
    let acts = |c: char| c.is_control() && !"\n\t".contains(c) || c == '\u{202e}';
    assert!(!html.contains(acts));
}
