//! Operations meet in what is generated: each of the effects that are hard to come by is there.

use oracle::address::{Address, PAGE, Place, Range, WINDOW_PAGES};
use oracle::generate::sequence;
use oracle::outcome::{Content, Region};
use oracle::step::{Advice, Map, ProcessId, Where};
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

/// What a model would say to a call, if it is defined.
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

/// Counts what becomes of `step`, which led from one model to the other.
fn count(counts: &mut Counts, before: &Model, step: &Step, outcome: &Outcome, after: &Model) {
    let process = step.process;
    let placed = matches!(outcome, Outcome::At(_) | Outcome::Somewhere);
    match step.call {
        Call::Remap(remap) if placed => {
            let several = regions(before, process, remap.old).len() > 1;
            let moves = remap.fixed.is_some();
            counts.add_if(
                several && moves && remap.bytes == remap.old.bytes,
                "several move",
            );
            counts.add_if(several && remap.bytes < remap.old.bytes, "several are cut");
            counts.add_if(remap.old.bytes == 0, "shared memory is doubled");
        }
        Call::Map(Map {
            at: Where::Hint(at, _),
            bytes,
            ..
        }) if at.place == Place::Window && bytes < 16 * PAGE => {
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
            let hole = at.place == Place::Window && regions(before, process, page).is_empty();
            let done = matches!(outcome, Outcome::Done | Outcome::Value(_));
            counts.add_if(hole && done, "a stack grows");
        }
        Call::Advise(_, Advice::Remove) => {
            counts.add_if(*outcome == Outcome::Done, "memory is removed");
        }
        Call::Sync(..) => {
            let busy = Outcome::Errno(libc::EBUSY);
            counts.add_if(*outcome == busy, "what is locked is not invalidated");
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
    counts.add_if(theirs != ours, "a child does not get all");
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
            let outcome = model.judge(&step).expect("what is generated is defined");
            count(&mut counts, &before, &step, &outcome, &model);
        }
    }
    println!("{:?}", counts.0);
    assert_eq!(counts.0.len(), 12, "{:?}", counts.0);
    for (what, times) in counts.0 {
        assert!(times >= 10, "{what}: {times}");
    }
}
