//! Hand-made intervals.

use super::prometheus::Counters;
use super::*;
use profile::{Hidden, Holder, Kind, Spread, Thread, Times, Wait};

fn lock(name: &str, waits: u64, wait: f64, p99: f64) -> Lock {
    let mut lock = Lock::new(name, Kind::Mutex, &format!("takes_{name}"));
    lock.add_waits(waits, wait, p99);
    lock.spread = Some(Spread {
        total: lock.wait,
        count: waits,
        p50: p99,
        p99,
        p999: p99,
        worst: p99,
        buckets: Vec::new(),
    });
    lock.share_of(10.0)
}

fn thread(pid: u32, tid: u32, busy: f64, waits: &[(&str, f64, bool)]) -> Thread {
    let wait = |&(what, seconds, idle): &(&str, f64, bool)| Wait {
        what: what.to_owned(),
        seconds,
        idle,
    };
    Thread {
        pid,
        tid,
        process: format!("program{pid}"),
        name: format!("thread{tid}"),
        busy,
        waits: waits.iter().map(wait).collect(),
    }
}

fn holder(lock: &str, function: &str, process: &str) -> Holder {
    Holder {
        lock: lock.to_owned(),
        process: process.to_owned(),
        watched: false,
        function: function.to_owned(),
        kind: Kind::RwsemRead,
        holds: 1,
        thread: None,
        queued: None,
        times: Some(Times {
            total: 0.5,
            mean: 0.5,
            p99: 0.5,
            worst: 0.5,
        }),
        waited: 0.25,
        share: 0.9,
    }
}

/// Two seconds of three locks and of two processes with three threads.
fn interval() -> Interval {
    Interval {
        time: 0.0,
        seconds: 2.0,
        lived: 10.0,
        active: 10.0,
        busy: 1.5,
        hidden: Hidden::default(),
        lost: 0,
        locks: vec![
            lock("b", 100, 3.0, 0.04),
            lock("mmap_lock", 400, 2.0, 0.01),
            lock("a\x1b[31m", 1, 1.0, 1.0),
        ],
        holders: vec![holder("mmap_lock", "show_smap", "agent")],
        threads: vec![
            thread(1, 11, 1.0, &[("ep_poll", 0.9, true), ("b", 0.6, false)]),
            thread(2, 20, 0.5, &[("mmap_lock", 1.0, false)]),
            thread(1, 12, 0.0, &[("ep_poll", 2.0, true)]),
        ],
    }
}

fn view(by_process: bool) -> View {
    let mut view = View::new("all processes", by_process);
    view.take(interval());
    view
}

/// The cells of the column `name` in the table that has it.
fn column(lines: &[String], name: &str) -> Vec<String> {
    let words = |line: &String| {
        let words = line.split("  ").map(str::trim);
        let words = words.filter(|word| !word.is_empty());
        Vec::from_iter(words.map(str::to_owned))
    };
    let at = |line: &String| words(line).iter().position(|word| word == name);
    let header = lines.iter().position(|line| at(line).is_some());
    let header = header.expect("a header");
    let at = at(&lines[header]).expect("a column");
    let rows = lines[header + 1..]
        .iter()
        .take_while(|line| !line.is_empty());
    rows.map(|row| words(row).get(at).cloned().unwrap_or_default())
        .collect()
}

#[test]
fn rows_are_in_the_chosen_order() {
    let mut view = view(true);
    for (sort, first) in [
        (Sort::Share, "b"),
        (Sort::Waits, "mmap_lock"),
        (Sort::P99, "a\\u001b[31m"),
        (Sort::Name, "a\\u001b[31m"),
    ] {
        view.sort = sort;
        assert_eq!(column(&view.plain(), "lock")[0], first, "{sort:?}");
    }
    assert_eq!(column(&view.plain(), "process"), ["program1", "program2"]);
    view.sort = Sort::Share;
    assert_eq!(column(&view.plain(), "process"), ["program1", "program2"]);
}

#[test]
fn a_row_has_rates_shares_and_the_holder() {
    let lines = view(true).plain();
    assert_eq!(column(&lines, "waiting"), ["1.50", "1.00", "0.50"]);
    assert_eq!(column(&lines, "share"), ["30.0 %", "20.0 %", "10.0 %"]);
    assert_eq!(column(&lines, "waits/s"), ["50.00", "200.0", "0.500"]);
    assert_eq!(column(&lines, "mean"), ["30.0 ms", "5.00 ms", "1.00 s"]);
    let holders = column(&lines, "holder");
    assert_eq!(holders, ["", "show_smap (agent, not watched)", ""]);
    assert!(lines[0].starts_with("all processes: 2.0 s, 3 threads, 0.75 CPUs busy"));
}

#[test]
fn threads_of_a_process_are_one_row_or_several() {
    let lines = view(true).plain();
    assert_eq!(column(&lines, "pid"), ["1", "2"]);
    assert_eq!(column(&lines, "CPU"), ["50.0 %", "25.0 %"]);
    assert_eq!(column(&lines, "for"), ["b", "mmap_lock"]);
    let lines = view(false).plain();
    assert_eq!(column(&lines, "tid"), ["11", "20", "12"]);
    assert_eq!(
        column(&lines, "thread"),
        ["thread11", "thread20", "thread12"]
    );
    let last = column(&lines, "for");
    assert_eq!(last, ["b", "mmap_lock", "nothing to do (ep_poll)"]);
}

#[test]
fn a_screen_is_filled_and_never_exceeded() {
    let view = view(false);
    for (width, height) in [(80, 24), (20, 8), (5, 3), (0, 0), (1, 1), (300, 100)] {
        let lines = view.screen(Size { width, height });
        assert_eq!(lines.len(), height.max(1), "{width}×{height}");
        assert!(lines.iter().all(|line| line.chars().count() <= width));
        assert!(!lines.concat().contains(|letter: char| letter.is_control()));
    }
    let lines = view.screen(Size {
        width: 100,
        height: 24,
    });
    assert!(lines[23].starts_with("sorted by share: s share, w waits"));
    // A small screen has the costliest locks and the most active threads.
    let lines = view.screen(Size {
        width: 100,
        height: 7,
    });
    assert_eq!(column(&lines, "lock"), ["b"]);
    assert_eq!(column(&lines, "tid")[0], "11");
}

#[test]
fn a_frozen_view_stays_until_it_goes_on() {
    let mut view = view(true);
    view.frozen = true;
    let mut next = interval();
    next.seconds = 4.0;
    view.take(next.clone());
    assert!(view.plain()[0].contains(": 2.0 s, 3 threads, 0.75 CPUs busy, frozen"));
    view.frozen = false;
    view.take(next);
    assert!(view.plain()[0].contains(": 4.0 s"));
}

#[test]
fn a_holder_is_shown_for_a_while_after_it_was_seen() {
    let mut view = view(true);
    let mut next = interval();
    next.holders.clear();
    let shown = |view: &View| !column(&view.plain(), "holder")[1].is_empty();
    for _ in 0..4 {
        view.take(next.clone());
        assert!(shown(&view));
    }
    view.take(next);
    assert!(!shown(&view));
}

/// The values of a text of metrics; each must be of a counter that the lines before declare.
fn parsed(text: &str) -> std::collections::BTreeMap<String, f64> {
    let mut declared = "";
    let mut values = std::collections::BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            declared = rest.strip_suffix(" counter").expect("a counter");
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let name = series.split('{').next().expect("a name");
            assert_eq!(name, declared, "{line}");
            let is_new = values
                .insert(series.to_owned(), value.parse().expect("a number"))
                .is_none();
            assert!(is_new, "{line}");
        }
    }
    values
}

#[test]
fn metrics_only_rise_and_have_all_labels() {
    let mut counters = Counters::default();
    let mut interval = interval();
    interval.locks.push(lock("q\"uo\\te\n", 1, 0.5, 0.5));
    interval
        .locks
        .push(lock("pthread_mutex at 0x1", 1, 0.5, 0.5));
    counters.add(&interval);
    let first = parsed(&counters.text());
    counters.add(&interval);
    let second = parsed(&counters.text());
    assert_eq!(first.len(), second.len());
    for (series, value) in &first {
        assert_eq!(second[series], 2.0 * value, "{series}");
    }
    let wait = "scalevm_lock_wait_seconds_total";
    let of = |lock: &str, caller: &str| {
        first[&format!("{wait}{{lock=\"{lock}\",kind=\"mutex\",caller=\"takes_{caller}\"}}")]
    };
    assert_eq!(of("b", "b"), 3.0);
    assert_eq!(of("q\\\"uo\\\\te\\n", "q\\\"uo\\\\te\\n"), 0.5);
    assert_eq!(of("pthread_mutex", "pthread_mutex at 0x1"), 0.5);
    let held = "scalevm_lock_holder_wait_seconds_total{lock=\"mmap_lock\",\
                function=\"show_smap\",process=\"agent\"}";
    assert_eq!(first[held], 0.25);
    assert_eq!(first["scalevm_watched_seconds_total"], 2.0);
}

#[test]
fn metrics_have_a_bound_and_lose_nothing() {
    let mut counters = Counters::default();
    let mut interval = interval();
    interval.locks = (0..3000)
        .map(|number| lock(&format!("lock{number}"), 1, 1.0, 1.0))
        .collect();
    counters.add(&interval);
    let values = parsed(&counters.text());
    let waits = values
        .iter()
        .filter(|(series, _)| series.starts_with("scalevm_lock_waits_total{"));
    let (count, sum) = waits.fold((0, 0.0), |(count, sum), (_, value)| {
        (count + 1, sum + value)
    });
    assert_eq!((count, sum), (1001, 3000.0));
}
