//! Generated operations meet: every effect that is hard to reach occurs.

use oracle::address::{Address, Origin, PAGE, Range, USER_END, WINDOW, WINDOW_PAGES};
use oracle::generate::sequence;
use oracle::outcome::{Content, Region};
use oracle::step::{Advice, Map, ProcessId, Remap, Where};
use oracle::{Call, Model, Outcome, Step};
use std::collections::BTreeMap;

/// How often something happened.
#[derive(Default)]
struct Counts(BTreeMap<&'static str, u32>);

impl Counts {
    fn add_if(&mut self, happened: bool, what: &'static str) {
        *self.0.entry(what).or_default() += u32::from(happened);
    }
}

/// A model's answer to a call, if defined.
fn asked(model: &Model, process: ProcessId, call: Call) -> Option<Outcome> {
    model.clone().judge(&Step { process, call }).ok()
}

fn regions(model: &Model, process: ProcessId, range: Range) -> Vec<Region> {
    match asked(model, process, Call::Regions(range)) {
        Some(Outcome::Regions(regions)) => regions,
        _ => vec![],
    }
}

fn window() -> Range {
    Range::pages(Address::window(0), WINDOW_PAGES)
}

/// Counts the effects of `step`, which led from `before` to `after`.
fn count(counts: &mut Counts, before: &Model, step: &Step, outcome: &Outcome, after: &Model) {
    let process = step.process;
    let placed = matches!(outcome, Outcome::At(_) | Outcome::Somewhere);
    match step.call {
        Call::Remap(remap) if placed => {
            let several = regions(before, process, remap.old).len() > 1;
            let moves = remap.fixed.is_some();
            counts.add_if(
                several && moves && remap.bytes == remap.old.bytes,
                "several mappings move",
            );
            counts.add_if(
                several && remap.bytes < remap.old.bytes,
                "several mappings are cut",
            );
            counts.add_if(remap.old.bytes == 0, "shared memory is doubled");
        }
        Call::Map(Map {
            at: Where::Hint(at, _),
            bytes,
            ..
        }) if at.place == Origin::Window && bytes < 16 * PAGE => {
            let range = Range { start: at, bytes };
            let free = regions(before, process, range).is_empty();
            let elsewhere = *outcome == Outcome::Somewhere;
            counts.add_if(free && elsewhere, "a hint is too near to a stack");
        }
        Call::Load(at, _) | Call::Store(at, ..) => {
            let page = Range {
                start: at,
                bytes: 1,
            };
            let hole = at.place == Origin::Window && regions(before, process, page).is_empty();
            let done = matches!(outcome, Outcome::Done | Outcome::Value(_));
            counts.add_if(hole && done, "a stack grows");
        }
        Call::Advise(_, Advice::Remove) => {
            counts.add_if(*outcome == Outcome::Done, "pages are removed from a file");
        }
        Call::Sync(..) => {
            let busy = Outcome::Errno(libc::EBUSY);
            counts.add_if(*outcome == busy, "locked memory is not invalidated");
        }
        Call::Fork(child) => count_fork(counts, before, process, after, child),
        _ => {}
    }
}

fn count_fork(
    counts: &mut Counts,
    before: &Model,
    parent: ProcessId,
    after: &Model,
    child: ProcessId,
) {
    let theirs = regions(before, parent, window());
    let ours = regions(after, child, window());
    counts.add_if(theirs != ours, "a child does not inherit everything");
    for region in ours {
        let first = Range::pages(region.start, 1);
        let content = |model, process| match asked(model, process, Call::Dump(first)) {
            Some(Outcome::Pages(pages)) => pages.first().cloned(),
            _ => None,
        };
        let wiped = content(after, child) == Some(Content::Bytes(vec![]));
        let full = content(before, parent) != Some(Content::Bytes(vec![]));
        counts.add_if(wiped && full, "a child finds zeroes");
        counts.add_if(region.shared, "a child shares memory");
        let dropped = |model, process| {
            let call = Call::Advise(first, Advice::DontNeed);
            asked(model, process, call) == Some(Outcome::Done)
        };
        let locked = !dropped(before, parent);
        counts.add_if(locked && dropped(after, child), "a child has no locks");
    }
    let alive = after.known().processes.len();
    counts.add_if(alive >= 4, "four processes live at once");
}

#[test]
fn operations_meet() {
    let mut counts = Counts::default();
    for seed in 0..200 {
        let mut model = Model::default();
        for step in sequence(seed, 150, Model::default(), &|_| true) {
            let before = model.clone();
            let outcome = model.judge(&step).expect("generated steps are defined");
            count(&mut counts, &before, &step, &outcome, &model);
        }
    }
    println!("{:?}", counts.0);
    assert_eq!(counts.0.len(), 12, "{:?}", counts.0);
    for (what, times) in counts.0 {
        assert!(times >= 10, "{what}: {times}");
    }
}

/// A call's name, and its addresses and lengths.
fn numbers(call: &Call) -> Option<(&'static str, Vec<Address>, Vec<u64>)> {
    let of = |name, range: Range| Some((name, vec![range.start], vec![range.bytes]));
    match *call {
        Call::Map(Map { at, bytes, .. }) => match at {
            Where::Fixed(at) => Some(("map fixed", vec![at], vec![bytes])),
            Where::FixedNoReplace(at) => Some(("map free", vec![at], vec![bytes])),
            Where::Hint(at, _) => Some(("map hint", vec![at], vec![bytes])),
            Where::Anywhere(_) => None,
        },
        Call::Remap(Remap {
            old, bytes, fixed, ..
        }) => {
            let places = fixed.into_iter().chain([old.start]).collect();
            Some(("remap", places, vec![old.bytes, bytes]))
        }
        Call::Unmap(range) => of("unmap", range),
        Call::Protect(range, _) => of("protect", range),
        Call::Advise(range, _) => of("advise", range),
        Call::Sync(range, _) => of("sync", range),
        Call::Lock(range) => of("lock", range),
        Call::LockOnFault(range) => of("lock-on-fault", range),
        Call::Unlock(range) => of("unlock", range),
        Call::InCore(range) => of("in-core", range),
        Call::Load(at, _) => Some(("load", vec![at], vec![])),
        Call::Store(at, ..) => Some(("store", vec![at], vec![])),
        _ => None,
    }
}

#[test]
fn arguments_are_at_their_edges() {
    let mut counts = BTreeMap::<_, u32>::new();
    for seed in 0..1000 {
        for step in sequence(seed, 150, Model::default(), &|_| true) {
            let Some((name, places, lengths)) = numbers(&step.call) else {
                continue;
            };
            let absolute = places.iter().filter(|at| at.place == Origin::Absolute);
            for at in absolute.map(|at| at.offset) {
                *counts.entry((name, "nowhere")).or_default() += u32::from(at < 1 << 16);
                *counts.entry((name, "at the end")).or_default() += u32::from(at >= USER_END);
            }
            for bytes in lengths {
                let window = places.iter().any(|at| at.place == Origin::Window);
                let wraps = window && bytes > u64::MAX - WINDOW - WINDOW_PAGES * PAGE;
                *counts.entry((name, "zero")).or_default() += u32::from(bytes == 0);
                *counts.entry((name, "all")).or_default() += u32::from(bytes > u64::MAX - PAGE);
                *counts.entry((name, "wraps")).or_default() += u32::from(wraps);
            }
        }
    }
    // New memory is never placed near address 0.
    counts.retain(|(name, what), _| !(name.starts_with("map") && *what == "nowhere"));
    assert_eq!(counts.len(), 9 * 5 + 3 * 4 + 2 * 2, "{counts:?}");
    for (what, times) in counts {
        assert!(times > 0, "{what:?}");
    }
}
