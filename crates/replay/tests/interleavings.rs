//! Replays of any program, with the steps of their parts in any order that the waits allow.

#[path = "../../recording/tests/support/mod.rs"]
mod support;

use proptest::prelude::*;
use recording::{Advice, Birth, Call, Prot, Recording, Sharing, What};
use std::collections::{BTreeMap, BTreeSet};
use support::{PAGE, Program, anonymous, at};
use workloads::replay::{Act, Replay, Spot, Start};

/// What a thread does next; numbers choose among what there is.
#[derive(Clone, Debug)]
enum Deed {
    Map {
        pages: u64,
        populate: bool,
    },
    MapOver {
        mapping: usize,
        page: u64,
        pages: u64,
    },
    Unmap {
        mapping: usize,
        page: u64,
        pages: u64,
    },
    Protect {
        mapping: usize,
        page: u64,
        pages: u64,
        write: bool,
    },
    Discard {
        mapping: usize,
        page: u64,
        pages: u64,
    },
    Remap {
        mapping: usize,
        pages: u64,
        moves: bool,
    },
    Break {
        pages: u64,
    },
    Touch {
        mapping: usize,
        page: u64,
        pages: u32,
    },
    Start,
    Fork {
        borrows: bool,
    },
    Exec,
    Wake {
        thread: usize,
    },
    Sleep,
    /// The process's memory is locked from outside.
    Held {
        write: bool,
    },
}

fn deed() -> impl Strategy<Value = Deed> {
    let (mapping, page, pages) = (0..8_usize, 0..16_u64, 1..9_u64);
    prop_oneof![
        4 => (1..17_u64, any::<bool>()).prop_map(|(pages, populate)| Deed::Map { pages, populate }),
        2 => (mapping.clone(), page.clone(), pages.clone())
            .prop_map(|(mapping, page, pages)| Deed::MapOver { mapping, page, pages }),
        3 => (mapping.clone(), page.clone(), pages.clone())
            .prop_map(|(mapping, page, pages)| Deed::Unmap { mapping, page, pages }),
        2 => (mapping.clone(), page.clone(), pages.clone(), any::<bool>()).prop_map(
            |(mapping, page, pages, write)| Deed::Protect { mapping, page, pages, write }
        ),
        2 => (mapping.clone(), page.clone(), pages)
            .prop_map(|(mapping, page, pages)| Deed::Discard { mapping, page, pages }),
        2 => (mapping.clone(), 1..33_u64, any::<bool>())
            .prop_map(|(mapping, pages, moves)| Deed::Remap { mapping, pages, moves }),
        1 => (1..9_u64).prop_map(|pages| Deed::Break { pages }),
        8 => (mapping, page, 1..5_u32)
            .prop_map(|(mapping, page, pages)| Deed::Touch { mapping, page, pages }),
        2 => Just(Deed::Start),
        1 => any::<bool>().prop_map(|borrows| Deed::Fork { borrows }),
        1 => Just(Deed::Exec),
        2 => (0..6_usize).prop_map(|thread| Deed::Wake { thread }),
        1 => Just(Deed::Sleep),
        2 => any::<bool>().prop_map(|write| Deed::Held { write }),
    ]
}

/// The recording of threads that do these deeds, one after the other.
fn program(deeds: &[(usize, Deed)]) -> Recording {
    let mut program = Program::new();
    let monitor = program.process(Birth::Foreign);
    let mut last = 0;
    let mut wakes: BTreeMap<u32, u32> = BTreeMap::new();
    // By process: the number of its heap, which copies inherit.
    let mut heaps: BTreeMap<u32, u32> = BTreeMap::new();
    let mut last_heap = 1000;
    let mut new_heap = || {
        last_heap += 1;
        last_heap
    };
    for (thread, deed) in deeds {
        let threads = program.0.threads.len();
        let thread = (thread % threads) as u32;
        let process = program.0.threads[thread as usize].process;
        if thread == monitor {
            continue;
        }
        let length = |pages: u64| pages * PAGE;
        match *deed {
            Deed::Map { pages, populate } => {
                last += 1;
                let call = Call::Map {
                    mapping: last,
                    length: length(pages),
                    prot: support::BOTH,
                    sharing: Sharing::Private,
                    file: None,
                    over: None,
                    populate,
                    no_reserve: false,
                    huge: false,
                };
                program.call(thread, call);
            }
            Deed::MapOver {
                mapping,
                page,
                pages,
            } => {
                let over = Some(at(mapping as u32, page));
                last += 1;
                program.call(thread, anonymous(last, pages, over));
            }
            Deed::Unmap {
                mapping,
                page,
                pages,
            } => {
                program.unmap(thread, mapping as u32, page, pages);
            }
            Deed::Protect {
                mapping,
                page,
                pages,
                write,
            } => {
                let (at, length) = (at(mapping as u32, page), length(pages));
                let prot = Prot {
                    write,
                    ..Prot::default()
                };
                program.call(thread, Call::Protect { at, length, prot });
            }
            Deed::Discard {
                mapping,
                page,
                pages,
            } => {
                let (at, length, advice) =
                    (at(mapping as u32, page), length(pages), Advice::Discard);
                program.call(thread, Call::Advise { at, length, advice });
            }
            Deed::Remap {
                mapping,
                pages,
                moves,
            } => {
                last += u32::from(moves);
                let call = Call::Remap {
                    at: at(mapping as u32, 0),
                    length: length(4),
                    new_length: length(pages),
                    to: moves.then_some(last),
                };
                program.call(thread, call);
            }
            Deed::Break { pages } => {
                let mapping = *heaps.entry(process).or_insert_with(&mut new_heap);
                let length = length(pages);
                program.call(thread, Call::Break { mapping, length });
                program.fault(thread, mapping, 0, 1);
            }
            Deed::Touch {
                mapping,
                page,
                pages,
            } => {
                program.fault(thread, mapping as u32, page, pages);
            }
            Deed::Start if threads < 6 => {
                let new = program.thread_of(process);
                program.add(thread, What::Start { thread: new });
            }
            Deed::Fork { borrows } if threads < 6 => {
                let new = program.process(Birth::Forked);
                let child = program.0.threads[new as usize].process;
                if let Some(heap) = heaps.get(&process).copied().filter(|_| !borrows) {
                    heaps.insert(child, heap);
                }
                program.add(
                    thread,
                    What::Fork {
                        thread: new,
                        borrows,
                    },
                );
            }
            // Other threads of the process would be gone.
            Deed::Exec => {
                let threads = program.0.threads.iter();
                if threads.filter(|other| other.process == process).count() == 1 {
                    program.add(thread, What::Exec);
                    heaps.remove(&process);
                }
            }
            Deed::Wake { thread: other } if other < threads && other as u32 != thread => {
                let count = wakes.entry(thread).or_default();
                program.add(
                    thread,
                    What::Wake {
                        thread: other as u32,
                    },
                );
                program.add(
                    other as u32,
                    What::Wait {
                        on: recording::WaitFor::Futex,
                        nanoseconds: 1000,
                        by: Some((thread, *count)),
                    },
                );
                *count += 1;
            }
            Deed::Sleep => {
                let on = recording::WaitFor::Time;
                program.add(
                    thread,
                    What::Wait {
                        on,
                        nanoseconds: 1000,
                        by: None,
                    },
                );
            }
            Deed::Held { write } => {
                let nanoseconds = 700;
                let what = What::Hold {
                    process,
                    write,
                    nanoseconds,
                };
                program.add(monitor, what);
            }
            Deed::Start | Deed::Fork { .. } | Deed::Wake { .. } => {}
        }
    }
    program.0
}

/// A process of the naive system: its mapped pages and which of them may be written, and the
/// addresses of its mappings.
#[derive(Clone, Default)]
struct Process {
    pages: BTreeMap<u64, bool>,
    addresses: BTreeMap<u32, u64>,
    next: u64,
    heap: Option<u64>,
}

impl Process {
    fn address(&self, spot: Spot) -> u64 {
        let start = self.addresses.get(&spot.mapping);
        start
            .expect("the mapping has been made")
            .wrapping_add(spot.offset as u64 / PAGE)
    }

    fn range(&self, at: Spot, length: usize) -> std::ops::Range<u64> {
        let start = self.address(at);
        start..start + length as u64 / PAGE
    }

    /// A place with nothing near it.
    fn place(&mut self) -> u64 {
        self.next += 1000;
        self.next
    }

    fn expect_mapped(&self, range: std::ops::Range<u64>) {
        for page in range {
            assert!(self.pages.contains_key(&page), "a page that is mapped");
        }
    }

    fn map(&mut self, range: std::ops::Range<u64>, write: bool) {
        self.pages.extend(range.map(|page| (page, write)));
    }

    fn unmap(&mut self, range: std::ops::Range<u64>) {
        for page in range {
            self.pages.remove(&page);
        }
    }

    /// Does `act`, which must succeed.
    fn take(&mut self, act: Act) {
        let may_write = |prot| prot == workloads::Prot::ReadWrite;
        match act {
            Act::Map {
                mapping,
                length,
                prot,
                over,
                ..
            } => {
                let start = match over {
                    Some(spot) => {
                        let range = self.range(spot, length);
                        self.expect_mapped(range.clone());
                        range.start
                    }
                    None => self.place(),
                };
                self.addresses.insert(mapping, start);
                self.map(start..start + length as u64 / PAGE, may_write(prot));
            }
            Act::Unmap { at, length } => {
                let range = self.range(at, length);
                self.expect_mapped(range.clone());
                self.unmap(range);
            }
            Act::Protect { at, length, prot } => {
                let range = self.range(at, length);
                self.expect_mapped(range.clone());
                self.map(range, may_write(prot));
            }
            Act::Treat { at, length, .. } => self.expect_mapped(self.range(at, length)),
            Act::Remap {
                at,
                length,
                new_length,
                to,
            } => {
                let range = self.range(at, length);
                self.expect_mapped(range.clone());
                let write = self.pages[&range.start];
                self.unmap(range);
                let start = self.place();
                let base = start.wrapping_sub(to.offset as u64 / PAGE);
                self.addresses.insert(to.mapping, base);
                self.map(start..start + new_length as u64 / PAGE, write);
            }
            Act::Break { mapping, length } => {
                let start = match self.heap {
                    Some(start) => start,
                    None => self.place(),
                };
                self.heap = Some(start);
                self.addresses.insert(mapping, start);
                self.unmap(start..start + 1000);
                self.map(start..start + length as u64 / PAGE, true);
            }
            Act::Touch { at, pages, write } => {
                for page in self.range(at, pages as usize * PAGE as usize) {
                    let may = self.pages.get(&page).expect("a page that is mapped");
                    assert!(*may || !write, "a page that may be written");
                }
            }
            Act::Scan | Act::Compute(_) | Act::Sleep(_) | Act::After { .. } | Act::Begin { .. } => {
            }
        }
    }
}

/// Takes the steps of all parts in an order that `dice` choose. Fails if a step is impossible, or
/// if parts wait for ever.
fn run(replay: &Replay, mut dice: impl Iterator<Item = usize>) {
    let mut processes = vec![Process::default()];
    // By part: its process once it has begun, and the number of steps taken.
    let mut parts: Vec<(Option<usize>, usize)> = vec![(None, 0); replay.parts.len()];
    parts[0].0 = Some(0);
    let mut announced: BTreeSet<(u32, u32)> = BTreeSet::new();
    loop {
        let can = |&part: &usize| {
            let (process, taken) = parts[part];
            process.is_some()
                && match replay.parts[part].get(taken).map(|step| step.act) {
                    None => false,
                    Some(Act::After { part, steps }) => announced.contains(&(part, steps)),
                    Some(_) => true,
                }
        };
        let able: Vec<usize> = (0..parts.len()).filter(can).collect();
        if able.is_empty() {
            break;
        }
        let part = able[dice.next().expect("endless") % able.len()];
        let (process, taken) = parts[part];
        let (process, step) = (process.expect("it has begun"), replay.parts[part][taken]);
        parts[part].1 += 1;
        if step.is_awaited {
            announced.insert((part as u32, taken as u32 + 1));
        }
        match step.act {
            Act::Begin { part, start } => {
                parts[part as usize].0 = Some(match start {
                    Start::Thread => process,
                    Start::Copy | Start::Fresh => {
                        let new = match start {
                            Start::Copy => processes[process].clone(),
                            _ => Process::default(),
                        };
                        processes.push(new);
                        processes.len() - 1
                    }
                });
            }
            act => processes[process].take(act),
        }
    }
    for (part, (_, taken)) in parts.iter().enumerate() {
        assert_eq!(
            *taken,
            replay.parts[part].len(),
            "part {part} comes to its end"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn every_step_is_possible_in_every_order(
        deeds in proptest::collection::vec((0..6_usize, deed()), 1..60),
        seed in any::<u64>(),
    ) {
        let recording = program(&deeds);
        let compiled = replay::compile(&recording);
        run(&compiled.replay, dice(seed));
        let counted = compiled.replay.parts.iter().flatten().filter(|step| step.counts).count();
        prop_assert_eq!(counted as u64, compiled.replay.operations);
        let left_out = compiled.left_out;
        prop_assert_eq!(left_out.of_calls - left_out.calls, compiled.replay.operations);
        let steps = compiled.replay.parts.iter().flatten();
        let scans = steps.filter(|step| step.act == Act::Scan).count();
        prop_assert_eq!(left_out.of_holds - left_out.holds, scans as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn more_and_fewer_threads_are_possible_in_every_order(
        deeds in proptest::collection::vec((0..6_usize, deed()), 1..60),
        role in any::<prop::sample::Index>(),
        count in 1..8_usize,
        seed in any::<u64>(),
    ) {
        let recording = program(&deeds);
        let roles = recording.roles();
        let scaled = recording.with_threads(role.get(&roles), count);
        run(&replay::compile(&scaled).replay, dice(seed));
    }
}

/// What the part does that stands for a monitor, and what is left out of its holds.
#[test]
fn a_monitor_is_a_part_of_each_process_that_it_looks_at() {
    let mut program = Program::new();
    let monitor = program.process(Birth::Foreign);
    let other = program.process(Birth::Forked);
    let process = |program: &Program, thread: u32| program.0.threads[thread as usize].process;
    let (here, there) = (process(&program, 0), process(&program, other));
    let hold = |process, write| What::Hold {
        process,
        write,
        nanoseconds: 700,
    };
    program.add(monitor, hold(here, false)); // Nobody has done anything.
    program.map(0, 1, 4);
    program.add(monitor, hold(here, false));
    program.add(monitor, hold(here, false));
    program.add(monitor, hold(here, true));
    program.fault(0, 1, 0, 2);
    let thread = other;
    let borrows = false;
    program.add(0, What::Fork { thread, borrows });
    program.fault(other, 1, 0, 1);
    program.add(monitor, hold(here, false));
    program.add(monitor, hold(there, false));
    program.add(other, What::Exit);
    program.add(monitor, hold(there, false));
    let compiled = replay::compile(&program.0);
    let parts = &compiled.replay.parts;
    let acts = |part: usize| -> Vec<Act> { parts[part].iter().map(|step| step.act).collect() };
    assert_eq!(
        parts.len(),
        6,
        "the root, three threads, and two parts for the monitor"
    );
    let step = |part: u32, wanted: fn(&Act) -> bool| {
        let of_part = acts(part as usize);
        of_part.iter().position(wanted).expect("it does") as u32 + 1
    };
    let after = |part, steps| Act::After { part, steps };
    let begins = |act: &Act| matches!(act, Act::Begin { part: 4, .. });
    let forks = |act: &Act| matches!(act, Act::Begin { part: 3, .. });
    let begins_other = |act: &Act| matches!(act, Act::Begin { part: 5, .. });
    let of_first = [
        after(1, step(1, begins)),
        Act::Scan,
        Act::Sleep(1000),
        Act::Scan,
        after(1, step(1, forks)),
        Act::Scan,
    ];
    assert_eq!(acts(4), of_first);
    let of_other = [
        after(3, step(3, begins_other)),
        Act::Scan,
        Act::Sleep(2000),
        Act::Scan,
    ];
    assert_eq!(acts(5), of_other);
    assert!(acts(2).is_empty(), "the monitor's own thread");
    assert_eq!(
        (compiled.left_out.holds, compiled.left_out.of_holds),
        (2, 7)
    );
    let said = compiled.left_out.to_string();
    assert!(
        said.ends_with(", and 71.4 % of 7 holds by others are replayed"),
        "{said}"
    );
}

/// Numbers by chance.
fn dice(mut state: u64) -> impl Iterator<Item = usize> {
    std::iter::repeat_with(move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize
    })
}
