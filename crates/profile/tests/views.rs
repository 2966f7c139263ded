//! Profiles kept, read back, drawn and compared.

use profile::flame::Widths;
use profile::{Difference, Holder, Kind, Lock, Profile, Stacks, Times, flame, parse, speedscope};
use stats::record::{Mode, Subject};

fn profile(rate: f64, locks: &[(&str, Kind, &str, f64)]) -> Profile {
    let seconds = 2.0;
    let tasks = 4;
    let share = seconds * f64::from(tasks);
    let lock = |&(name, kind, caller, wait): &(&str, Kind, &str, f64)| {
        let mut lock = Lock::new(name, kind, caller);
        lock.add_waits(100, wait, wait / 10.0);
        lock.share_of(share)
    };
    let locks: Vec<Lock> = locks.iter().map(lock).collect();
    let mut busy = Stacks::default();
    busy.add(["mmap1", "main", "__vm_munmap_[k]", "osq_lock_[k]"], 3.0);
    busy.add(["mmap1", "main", "vm_mmap_pgoff_[k]"], 1.5);
    let mut waits = Stacks::default();
    waits.add(["mmap1", "main", "schedule_[k]"], 2.5);
    let mut profile = Profile {
        rate: Some(rate),
        rate_unwatched: Some(1.25 * rate),
        busy,
        waits,
        locks,
        notes: vec!["3 events were lost".into()],
        ..Profile::new(
            Subject {
                unit: "operations/s".into(),
                ..Subject::new("mmap1", "os", tasks, Mode::Threads)
            },
            seconds,
            "cpu-clock",
        )
    };
    profile.name_bottleneck();
    profile
}

#[test]
fn what_one_side_hides_is_said_of_the_difference() {
    let (before, mut after) = (profile(1e5, &[]), profile(1e5, &[]));
    after.hidden.waits = true;
    let sentence = Difference::of(&before, &after).sentence;
    assert!(
        sentence.ends_with("; waits could not be seen"),
        "{sentence}"
    );
}

#[test]
fn what_has_no_rate_is_compared_without_one() {
    let one = |rate, wait| Profile {
        rate,
        ..profile(1e5, &[("big", Kind::Mutex, "a", wait)])
    };
    let sentence = |before, after| Difference::of(&one(before, 4.0), &one(after, 0.8)).sentence;
    let shift = "less waiting for big 50 → 10 %; no lock took its place";
    assert_eq!(sentence(None, None), shift);
    let (before, after) = (sentence(None, Some(1.0)), sentence(Some(1.0), None));
    assert_eq!(before, format!("no rate before; {shift}"));
    assert_eq!(after, format!("no rate after; {shift}"));
    let attached = one(None, 4.0);
    assert_eq!(attached.cost(), None);
    let line = serde_json::to_string(&attached).expect("JSON");
    assert_eq!(parse("x", line.as_bytes()).expect("read")[0].rate, None);
}

#[test]
fn shares_are_of_the_time_that_tasks_lived() {
    let mut profile = profile(1e5, &[]);
    let all = profile.seconds * f64::from(profile.subject.tasks);
    assert_eq!(profile.task_seconds(), all);
    profile.lived = Some(3.0 * all);
    assert_eq!(profile.task_seconds(), 3.0 * all);
}

#[test]
fn a_profile_is_one_line_and_comes_back() {
    let profile = profile(1e5, &[("mmap_lock", Kind::RwsemWrite, "__vm_munmap", 6.0)]);
    assert_eq!(profile.cost(), Some(1.0 - 0.8));
    assert_eq!(
        profile.bottleneck,
        "75 % of task time waits for mmap_lock, taken for writing in __vm_munmap"
    );
    let line = serde_json::to_string(&profile).expect("serializes");
    assert!(
        !line.contains('\n') && line.contains(r#""kind":"rwsem write""#),
        "{line}"
    );
    let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(value["kind"], "profile");
    let file = format!("{{\"kind\":\"sample\"}}\n\n{line}\n");
    assert_eq!(parse("f", file.as_bytes()).expect("reads"), [profile]);
}

#[test]
fn holders_come_back_and_older_files_have_none() {
    let mut profile = profile(1e5, &[]);
    profile.holders.push(Holder {
        lock: "mmap_lock".into(),
        process: "agent".into(),
        watched: false,
        function: "show_smap".into(),
        kind: Kind::RwsemRead,
        holds: 3,
        thread: None,
        queued: None,
        times: Some(Times {
            total: 0.018,
            mean: 0.006,
            p99: 0.007,
            worst: 0.007,
        }),
        waited: 0.01,
        share: 0.8,
    });
    let line = serde_json::to_string(&profile).expect("serializes");
    assert_eq!(
        parse("f", line.as_bytes()).expect("reads"),
        [profile.clone()]
    );
    let bad = line.replace("0.006", "-0.006");
    let error = parse("f", bad.as_bytes())
        .expect_err("negative")
        .to_string();
    assert!(error.contains("show_smap took -0.006 seconds"), "{error}");
    let mut older = serde_json::to_value(&profile).expect("JSON");
    older.as_object_mut().expect("an object").remove("holders");
    profile.holders.clear();
    let read = parse("f", older.to_string().as_bytes());
    assert_eq!(read.expect("reads"), [profile]);
}

#[test]
fn damage_is_named_with_its_line() {
    let good = serde_json::to_string(&profile(1e5, &[])).expect("serializes");
    let bad = [
        (
            good.replace("\"seconds\":2.0", "\"seconds\":0.0"),
            "`seconds` is 0",
        ),
        (good.replace("3.0", "-3.0"), "took -3 seconds"),
        (good.replace("cpu-clock", "cpu-clock\"x"), "at column"),
        (good[..good.len() - 2].to_owned(), "EOF"),
    ];
    for (line, why) in bad {
        let error = parse("f", format!("{good}\n{line}\n").as_bytes());
        let error = error.expect_err(why).to_string();
        assert!(error.starts_with("f:2: ") && error.contains(why), "{error}");
    }
}

#[test]
fn flame_graphs_can_be_searched_and_hold_every_function() {
    let profile = profile(1e5, &[]);
    let svg = flame::svg(&profile.busy, "mmap1", "4 threads").expect("draws");
    for part in [
        "<svg",
        "osq_lock",
        "vm_mmap_pgoff",
        "id=\"search\"",
        "4 threads",
        "µs",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    let empty = flame::svg(&Stacks::default(), "t", "").expect("draws");
    assert!(empty.contains("nothing seen"));
    let mut brief = Stacks::default();
    brief.add(["mmap1", "main"], 3e-7);
    let brief = flame::svg(&brief, "t", "").expect("draws what rounds to nothing");
    assert!(brief.contains("nothing seen"));
}

#[test]
fn what_grew_is_red_and_what_shrank_is_blue() {
    let (mut before, mut after) = (Stacks::default(), Stacks::default());
    before.add(["t", "shrank"], 3.0);
    before.add(["t", "grew"], 1.0);
    before.add(["t", "gone"], 2.0);
    // Twice the run time: twice the seconds would be no change.
    after.add(["t", "shrank"], 2.0);
    after.add(["t", "grew"], 6.0);
    let draw = |widths| flame::difference((&before, 4.0), (&after, 8.0), widths, "t", "");
    let colour = |svg: &str, name: &str| -> Vec<u8> {
        let from = svg.find(&format!("<title>{name} (")).expect(name);
        let fill = &svg[from..][svg[from..].find("rgb(").expect("a colour") + 4..];
        let numbers = fill[..fill.find(')').expect("an end")].split(',');
        numbers
            .map(|number| number.parse().expect("a number"))
            .collect()
    };
    for widths in [Widths::After, Widths::Before] {
        let svg = draw(widths).expect("draws");
        let (grew, shrank) = (colour(&svg, "grew"), colour(&svg, "shrank"));
        assert!(grew[0] > grew[2], "{widths:?}: {grew:?}");
        assert!(shrank[2] > shrank[0], "{widths:?}: {shrank:?}");
        // A stack that is gone has no width of its own.
        assert_eq!(svg.contains("<title>gone ("), widths == Widths::Before);
    }
    let nothing = Stacks::default();
    let empty = flame::difference((&before, 4.0), (&nothing, 8.0), Widths::After, "t", "");
    assert!(empty.expect("draws").contains("nothing seen"));
}

#[test]
fn speedscope_files_name_each_frame_once() {
    let file = speedscope::file(&profile(1e5, &[]), "mmap1");
    let frames = file["shared"]["frames"].as_array().expect("frames");
    let names: Vec<&str> = frames
        .iter()
        .filter_map(|frame| frame["name"].as_str())
        .collect();
    assert_eq!(names.iter().filter(|name| **name == "main").count(), 1);
    let busy = &file["profiles"][0];
    assert_eq!(busy["endValue"], 4.5);
    let samples = busy["samples"].as_array().expect("samples");
    let first: Vec<&str> = samples[0]
        .as_array()
        .expect("a stack")
        .iter()
        .map(|number| names[number.as_u64().expect("a number") as usize])
        .collect();
    assert_eq!(first, ["mmap1", "main", "__vm_munmap_[k]", "osq_lock_[k]"]);
    assert_eq!(file["profiles"][1]["weights"][0], 2.5);
}

#[test]
fn a_difference_says_where_the_contention_shifted_to() {
    let before = profile(
        1e5,
        &[
            ("mmap_lock", Kind::RwsemWrite, "__vm_munmap", 6.0),
            ("mmap_lock", Kind::RwsemWrite, "vm_mmap_pgoff", 0.8),
            ("zone->lock", Kind::Spinlock, "rmqueue", 0.08),
        ],
    );
    let after = profile(
        3e5,
        &[
            ("mmap_lock", Kind::RwsemWrite, "__vm_munmap", 0.8),
            ("page-table lock", Kind::Spinlock, "zap_pte_range", 4.0),
            ("zone->lock", Kind::Spinlock, "rmqueue", 0.09),
        ],
    );
    let difference = Difference::of(&before, &after);
    assert_eq!(
        difference.sentence,
        "3.00 times the rate; less waiting for mmap_lock 85 → 10 %; \
         the contention shifted to page-table lock 0 → 50 %"
    );
    let first = &difference.changes[0];
    assert_eq!(
        (first.caller.as_str(), first.contentions_before),
        ("__vm_munmap", 12.5)
    );
    assert!((first.more() + 0.65).abs() < 1e-9);
    assert_eq!(difference.changes.len(), 4);
    let same = Difference::of(&before, &before).sentence;
    assert_eq!(
        same,
        "1.00 times the rate; no lock's share of task time changed"
    );
}

/// A task waits for a lock at the lock's line, so part of the time would be counted twice.
#[test]
fn a_lock_and_its_line_are_one() {
    let locks = |lock, line| {
        profile(
            1e5,
            &[
                ("big", Kind::Own, "enter", lock),
                ("big", Kind::Line, "", line),
            ],
        )
    };
    let difference = Difference::of(&locks(4.8, 4.0), &locks(0.8, 1.6));
    assert_eq!(
        difference.sentence,
        "1.00 times the rate; less waiting for big 60 → 10 %; no lock took its place"
    );
}

#[test]
fn what_started_a_task_can_be_left_out() {
    let mut stacks = Stacks::default();
    stacks.add(
        [
            "scalevm",
            "main",
            "begin_task<T>",
            "{closure#0}",
            "run",
            "munmap",
        ],
        1.0,
    );
    stacks.add(
        [
            "preempted",
            "scalevm",
            "clone",
            "begin_task<U>",
            "run",
            "munmap",
        ],
        2.0,
    );
    stacks.add(["scalevm", "clone", "begin_task<U>", "run", "munmap"], 4.0);
    stacks.add(["kworker", "run"], 8.0);
    let begun = stacks.begun_at("begin_task");
    let expected = [
        ("kworker;run", 8.0),
        ("preempted;scalevm;run;munmap", 2.0),
        ("scalevm;run;munmap", 5.0),
    ];
    assert_eq!(begun.iter().collect::<Vec<_>>(), expected);
}

/// Thread names and functions are whatever their programs make them.
#[test]
fn no_name_breaks_a_picture_or_a_line() {
    let names = [
        "a;b c)\n(",
        "\u{1b}[31mred",
        "\u{1}\u{2}\u{7f}\u{9b}",
        "<script>&\"'",
        "\u{fffd}\u{202e}\u{ffff}",
        "",
        "\t\r",
    ];
    let mut stacks = Stacks::default();
    for name in names {
        stacks.add([name, "main", name], 1.0);
    }
    let long = "L".repeat(3000);
    stacks.add(["p", &long], 1.0);
    let acts = |c: char| c.is_control() && c != '\n' || "\u{202e}\u{ffff}".contains(c);
    let folded = stacks.folded();
    assert!(!folded.contains(acts), "{folded:?}");
    assert_eq!(folded.lines().count(), names.len() + 1);
    for line in folded.lines() {
        let (stack, count) = line.rsplit_once(' ').expect("a number");
        assert_eq!(count, "1000000");
        assert!(stack.split(';').all(|frame| !frame.is_empty()), "{line}");
        assert!(stack.chars().count() < 1100 && (stack.len() < 900 || stack.contains('…')));
    }
    let title = "`./n \u{1b}` <&";
    let busy = flame::svg(&stacks, title, title).expect("a picture");
    let changed = flame::difference((&stacks, 1.0), (&stacks, 2.0), Widths::After, title, title);
    for svg in [busy, changed.expect("a picture")] {
        assert!(!svg.contains(acts));
        assert!(svg.contains("\\u001b[31mred") && svg.contains("&lt;script&gt;&amp;"));
        assert!(!svg.contains("<script>&"));
    }
    // A file of profiles is read back, whatever its names are.
    let mut profile = profile(1.0, &[]);
    profile.busy = stacks.clone();
    let mut value = serde_json::to_value(&profile).expect("JSON");
    value["busy"]["x\u{1b}y;z"] = 1.0.into();
    let read = parse("p.jsonl", value.to_string().as_bytes()).expect("a profile");
    assert_eq!(read[0].busy.iter().count(), stacks.iter().count() + 1);
    assert!(!read[0].busy.folded().contains(acts));
}
