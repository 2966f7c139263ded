//! Recordings at random, with all that a recording may have.

use proptest::collection::vec;
use proptest::prelude::*;
use recording::{
    Advice, Birth, Call, Environment, Event, FaultKind, File, Lost, Place, Process, Prot,
    Recording, Sharing, Thread, WaitFor, What,
};

/// The largest numbers of mappings, threads, processes and files that events name.
const MAPPINGS: u32 = 12;
const THREADS: u32 = 5;
const PROCESSES: u32 = 3;
const FILES: u32 = 2;

/// A recording that a writer takes.
pub fn recording() -> impl Strategy<Value = Recording> {
    let thread = (any::<u32>(), 0..PROCESSES, name());
    let thread = thread.prop_map(|(tid, process, name)| Thread { tid, process, name });
    let process = (any::<u32>(), name(), birth());
    let process = process.prop_map(|(pid, name, birth)| Process { pid, name, birth });
    let file = (name(), any::<u64>()).prop_map(|(name, length)| File { name, length });
    (
        environment(),
        vec(process, PROCESSES as usize),
        vec(thread, THREADS as usize),
        vec(file, FILES as usize),
        vec((0..3_000_000_000_u64, event()), 0..60),
        lost(),
        (any::<u32>(), prop::option::of(0.0..10.0)),
    )
        .prop_map(
            |(environment, processes, threads, files, events, lost, (rest, cost))| {
                let events = in_order(events);
                let end = events.last().map_or(0, |event| event.at);
                Recording {
                    environment,
                    nanoseconds: end.saturating_add(rest.into()),
                    page: 4096,
                    processes,
                    threads,
                    files,
                    events,
                    lost,
                    cost,
                }
            },
        )
}

/// Gives the events their times. One that names a mapping that none before makes is unknown.
fn in_order(events: Vec<(u64, Event)>) -> Vec<Event> {
    let (mut at, mut made) = (0, Vec::new());
    let ordered = events.into_iter().map(|(passed, mut event)| {
        at += passed;
        event.at = at;
        let places: Vec<Place> = match &event.what {
            What::Call { call, parts, .. } => {
                let parts = parts.iter().map(|(at, _)| *at);
                call.at().into_iter().chain(parts).collect()
            }
            What::Given { call } => call.at().into_iter().collect(),
            What::Fault { at, .. } => vec![*at],
            _ => Vec::new(),
        };
        if places.iter().any(|place| !made.contains(&place.mapping)) {
            event.what = What::Unknown;
        }
        if let What::Call { call, .. } | What::Given { call } = &event.what {
            made.extend(call.made());
        }
        event
    });
    ordered.collect()
}

fn environment() -> impl Strategy<Value = Environment> {
    (
        name(),
        any::<(u32, u32, u64)>(),
        name(),
        vec((name(), name()), 0..3),
    )
        .prop_map(
            |(kernel, (cpus, overcommit, max_map_count), huge_pages, variables)| Environment {
                kernel,
                cpus,
                huge_pages,
                overcommit,
                max_map_count,
                variables,
            },
        )
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("worker-1".to_owned()), "\\PC{0,20}"]
}

fn birth() -> impl Strategy<Value = Birth> {
    prop_oneof![
        Just(Birth::Existed),
        Just(Birth::Forked),
        Just(Birth::Foreign)
    ]
}

fn lost() -> impl Strategy<Value = Lost> {
    any::<(u64, u64, u64)>().prop_map(|(records, unknown, switches)| Lost {
        records,
        unknown,
        switches,
    })
}

fn event() -> impl Strategy<Value = Event> {
    let computed = prop_oneof![0..5000_u64, any::<u64>()];
    (0..THREADS, computed, what()).prop_map(|(thread, computed, what)| Event {
        at: 0,
        thread,
        computed,
        what,
    })
}

fn what() -> impl Strategy<Value = What> {
    let parts = vec((place(), size()), 0..3);
    let calls = (call(), prop_oneof![Just(0), any::<u16>()], parts);
    let fault = (place(), any::<u32>(), any::<(bool, bool, bool)>());
    let wait = (
        wait_for(),
        any::<u64>(),
        prop::option::of((0..THREADS, prop_oneof![any::<u32>(), Just(u32::MAX)])),
    );
    prop_oneof![
        6 => calls.prop_map(|(call, error, parts)| What::Call { call, error, parts }),
        2 => call().prop_map(|call| What::Given { call }),
        3 => fault.prop_map(|(at, pages, (write, is_protected, in_kernel))| What::Fault {
            at,
            pages,
            write,
            kind: if is_protected { FaultKind::Protected } else { FaultKind::Missing },
            in_kernel,
        }),
        1 => Just(What::Unknown),
        1 => (0..THREADS).prop_map(|thread| What::Start { thread }),
        1 => (0..THREADS, any::<bool>()).prop_map(|(thread, borrows)| What::Fork {
            thread,
            borrows,
        }),
        1 => Just(What::Exec),
        1 => Just(What::Exit),
        2 => wait.prop_map(|(on, nanoseconds, by)| What::Wait { on, nanoseconds, by }),
        2 => (0..THREADS).prop_map(|thread| What::Wake { thread }),
        1 => (0..PROCESSES, any::<bool>(), any::<u64>()).prop_map(
            |(process, write, nanoseconds)| What::Hold { process, write, nanoseconds }
        ),
    ]
}

fn wait_for() -> impl Strategy<Value = WaitFor> {
    prop_oneof![
        Just(WaitFor::Futex),
        Just(WaitFor::Pipe),
        Just(WaitFor::Poll),
        Just(WaitFor::Child),
        Just(WaitFor::Time),
        Just(WaitFor::Other)
    ]
}

fn call() -> impl Strategy<Value = Call> {
    let range = || (place(), size());
    prop_oneof![
        4 => map(),
        2 => range().prop_map(|(at, length)| Call::Unmap { at, length }),
        1 => (range(), prot()).prop_map(|((at, length), prot)| Call::Protect {
            at,
            length,
            prot
        }),
        1 => (range(), advice()).prop_map(|((at, length), advice)| Call::Advise {
            at,
            length,
            advice
        }),
        1 => (range(), size(), prop::option::of(mapping())).prop_map(
            |((at, length), new_length, to)| Call::Remap { at, length, new_length, to }
        ),
        1 => (mapping(), size()).prop_map(|(mapping, length)| Call::Break { mapping, length }),
        1 => range().prop_map(|(at, length)| Call::Lock { at, length }),
        1 => range().prop_map(|(at, length)| Call::Unlock { at, length }),
        1 => range().prop_map(|(at, length)| Call::Sync { at, length }),
        1 => range().prop_map(|(at, length)| Call::InCore { at, length }),
        1 => any::<u32>().prop_map(|number| Call::Other { number }),
    ]
}

fn map() -> impl Strategy<Value = Call> {
    (
        (mapping(), size(), prot()),
        prop::option::of((0..FILES, size())),
        prop::option::of(place()),
        any::<(bool, bool, bool, bool)>(),
    )
        .prop_map(
            |((mapping, length, prot), file, over, (is_shared, populate, no_reserve, huge))| {
                Call::Map {
                    mapping,
                    length,
                    prot,
                    sharing: match is_shared {
                        true => Sharing::Shared,
                        false => Sharing::Private,
                    },
                    file,
                    over,
                    populate,
                    no_reserve,
                    huge,
                }
            },
        )
}

fn advice() -> impl Strategy<Value = Advice> {
    prop_oneof![
        Just(Advice::Discard),
        Just(Advice::Free),
        Just(Advice::PageOut),
        Just(Advice::Cold),
        Just(Advice::Remove),
        Just(Advice::PopulateRead),
        Just(Advice::PopulateWrite),
        Just(Advice::Huge),
        Just(Advice::NoHuge),
        any::<u32>().prop_map(Advice::Other),
    ]
}

fn prot() -> impl Strategy<Value = Prot> {
    any::<(bool, bool, bool)>().prop_map(|(read, write, execute)| Prot {
        read,
        write,
        execute,
    })
}

fn place() -> impl Strategy<Value = Place> {
    (mapping(), size()).prop_map(|(mapping, offset)| Place { mapping, offset })
}

fn mapping() -> impl Strategy<Value = u32> {
    prop_oneof![9 => 0..MAPPINGS, 1 => Just((1 << 31) - 1)]
}

/// Whole pages, and any number of bytes.
fn size() -> impl Strategy<Value = u64> {
    prop_oneof![(0..1000_u64).prop_map(|pages| pages << 12), any::<u64>()]
}
