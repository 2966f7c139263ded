//! Memory operations of small programs, recorded and compared event by event with what they did.
//! Needs root; without it the tests say that they are skipped.

use perf::Whom;
use perf::operations::{Operations, Options, Subject, Underway};
use recording::{Advice, Birth, Call, End, FaultKind, Place, Recording, WaitFor, What};
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PAGE: u64 = 4096;
/// The length of the mapping that marks where a program begins.
const MARK: u64 = 77 * PAGE;

/// One recording at a time: others would cost it time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program, compiled.
fn program() -> PathBuf {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = TempDir::new().expect("a folder");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/operations/program.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-pthread", source, "-o"]);
        let status = compiler.arg(folder.path().join("program")).status();
        assert!(status.expect("a C compiler").success());
        folder
    });
    folder.path().join("program")
}

/// A recording that goes on, and its file; none where nothing can be traced.
fn begun(subject: Subject, options: Options) -> Option<(Underway, File)> {
    let operations = match Operations::open(options) {
        Err(why @ perf::Error::Untraced { .. }) => {
            eprintln!("skipped: {why}");
            return None;
        }
        opened => opened.expect("opens"),
    };
    let file = tempfile::tempfile().expect("a file");
    let to = file.try_clone().expect("the same file");
    Some((operations.start(subject, to).expect("starts"), file))
}

/// The recording, when all of its processes have ended.
fn ended((underway, mut file): (Underway, File)) -> Recording {
    let begun = Instant::now();
    while !underway.is_over() {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never ends");
        std::thread::sleep(Duration::from_millis(10));
    }
    let summary = underway.finish().expect("finishes");
    std::io::Seek::rewind(&mut file).expect("rewound");
    let (recording, end) = Recording::read(file).expect("a recording");
    assert_eq!(end, End::Whole);
    assert_eq!(summary.events, recording.events.len() as u64);
    let lost = (recording.lost.records, recording.lost.switches);
    assert_eq!(lost, (0, 0), "records were lost");
    recording
}

/// The recording of the program with `arguments`; none where nothing can be traced.
fn recorded(arguments: &str) -> Option<Recording> {
    let program = program();
    let underway = begun(Subject::Started, Options::default())?;
    let status = Command::new(program).args(arguments.split(' ')).status();
    assert!(status.expect("it runs").success());
    Some(ended(underway))
}

/// What a thread did after its mark, or from its beginning.
fn of(recording: &Recording, thread: u32) -> Vec<What> {
    let all = recording
        .events
        .iter()
        .filter(|event| event.thread == thread);
    let all: Vec<What> = all.map(|event| event.what.clone()).collect();
    let mark = all
        .iter()
        .rposition(|what| length_of_map(what) == Some(MARK));
    all[mark.map_or(0, |mark| mark + 1)..].to_vec()
}

fn length_of_map(what: &What) -> Option<u64> {
    match what {
        What::Call {
            call: Call::Map { length, .. },
            error: 0,
            ..
        } => Some(*length),
        _ => None,
    }
}

/// The number of the mapping that an event makes.
fn made(what: &What) -> u32 {
    match what {
        What::Call { call, .. } | What::Given { call } => call.made().expect("a mapping"),
        _ => panic!("{what:?}"),
    }
}

/// The calls that map, with their places among the events.
fn maps(events: &[What]) -> Vec<usize> {
    let all = events.iter().enumerate();
    let all = all.filter(|(_, what)| length_of_map(what).is_some());
    all.map(|(at, _)| at).collect()
}

/// A run of faults, in short: mapping, first page, pages, write, kind.
type Touched = (u32, u64, u32, bool, FaultKind);

/// The faults of `events` in `mapping`; runs that were cut are put together again.
fn touched(events: &[What], mapping: u32) -> Vec<Touched> {
    let mut all: Vec<Touched> = Vec::new();
    for what in events {
        let What::Fault {
            at,
            pages,
            write,
            kind,
            in_kernel: false,
        } = *what
        else {
            continue;
        };
        let page = at.offset / PAGE;
        match all.last_mut() {
            _ if at.mapping != mapping => {}
            Some((_, first, count, how, why))
                if *first + u64::from(*count) == page && (*how, *why) == (write, kind) =>
            {
                *count += pages;
            }
            _ => all.push((mapping, page, pages, write, kind)),
        }
    }
    all
}

fn calls(events: &[What]) -> Vec<&Call> {
    let all = events.iter().filter_map(|what| match what {
        What::Call { call, error: 0, .. } => Some(call),
        _ => None,
    });
    all.collect()
}

/// What a thread waited for, and who woke it.
fn waits(recording: &Recording, thread: u32) -> Vec<(WaitFor, Option<(u32, u32)>)> {
    let all = of(recording, thread).into_iter();
    let all = all.filter_map(|what| match what {
        What::Wait { on, by, .. } => Some((on, by)),
        _ => None,
    });
    all.collect()
}

#[test]
fn threads_that_map_touch_and_unmap() {
    let _alone = alone();
    let Some(recording) = recorded("threads 3 50") else {
        return;
    };
    assert_eq!((recording.processes.len(), recording.threads.len()), (1, 4));
    assert_eq!(recording.lost.unknown, 0);
    let starts = of(&recording, 0);
    let starts = starts
        .iter()
        .filter(|what| matches!(what, What::Start { .. }));
    assert_eq!(starts.count(), 3);
    for thread in 1..4 {
        let events = of(&recording, thread);
        assert_eq!(events.last(), Some(&What::Exit));
        let maps = events
            .iter()
            .filter(|what| length_of_map(what) == Some(16 * PAGE));
        let maps: Vec<u32> = maps.map(made).collect();
        assert_eq!(maps.len(), 50);
        for mapping in maps {
            let whole = (mapping, 0, 16, true, FaultKind::Missing);
            assert_eq!(touched(&events, mapping), [whole]);
            let at = Place { mapping, offset: 0 };
            let length = 16 * PAGE;
            let unmaps = calls(&events).into_iter();
            let unmaps = unmaps.filter(|call| **call == Call::Unmap { at, length });
            assert_eq!(unmaps.count(), 1, "mapping {mapping}");
        }
    }
}

#[test]
fn a_thousand_threads() {
    let _alone = alone();
    let Some(recording) = recorded("threads 1000 2") else {
        return;
    };
    assert_eq!(recording.threads.len(), 1001);
    assert_eq!(recording.lost.unknown, 0);
    for thread in 1..1001 {
        let events = of(&recording, thread);
        let maps = events
            .iter()
            .filter(|what| length_of_map(what) == Some(16 * PAGE));
        assert_eq!(maps.count(), 2, "thread {thread}");
        assert_eq!(events.last(), Some(&What::Exit));
    }
}

#[test]
fn a_forked_process_copies_what_it_writes_to() {
    let _alone = alone();
    let Some(recording) = recorded("copies") else {
        return;
    };
    let [parent, child] = [of(&recording, 0), of(&recording, 1)];
    let map = &parent[maps(&parent)[0]];
    let mapping = made(map);
    assert_eq!(length_of_map(map), Some(8 * PAGE));
    let fork = What::Fork {
        thread: 1,
        borrows: false,
    };
    let forks = parent
        .iter()
        .position(|what| *what == fork)
        .expect("a fork");
    let new = (mapping, 0, 8, true, FaultKind::Missing);
    let copied = FaultKind::Protected;
    assert_eq!(touched(&parent[..forks], mapping), [new]);
    assert_eq!(
        touched(&parent[forks..], mapping),
        [(mapping, 0, 1, true, copied)]
    );
    assert_eq!(touched(&child, mapping), [(mapping, 2, 3, true, copied)]);
    let births: Vec<Birth> = recording.processes.iter().map(|one| one.birth).collect();
    assert_eq!(births, [Birth::Existed, Birth::Forked]);
    // The child wakes its parent when it ends.
    let wake = child
        .iter()
        .position(|what| *what == What::Wake { thread: 0 });
    let is_wait = |what: &&What| {
        let on = WaitFor::Child;
        matches!(what, What::Wait { on: wait, by: Some((1, 0)), .. } if *wait == on)
    };
    assert!(
        wake.is_some() && parent.iter().any(|what| is_wait(&what)),
        "{parent:?}"
    );
    assert_eq!(child.last(), Some(&What::Exit));
}

#[test]
fn the_heap_grows_and_shrinks() {
    let _alone = alone();
    let Some(recording) = recorded("heap") else {
        return;
    };
    let events = of(&recording, 0);
    let breaks = calls(&events).into_iter().map(|call| match *call {
        Call::Break { mapping, length } => (mapping, length),
        _ => panic!("{call:?}"),
    });
    // The C library asks first where the heap ends.
    let breaks: Vec<(u32, u64)> = breaks.collect();
    let [.., before, (heap, grown), (_, shrunk)] = breaks[..] else {
        panic!("{breaks:?}");
    };
    assert_eq!((grown, shrunk), (before.1 + 4 * PAGE, before.1 + PAGE));
    let first = before.1 / PAGE;
    assert_eq!(
        touched(&events, heap),
        [(heap, first, 4, true, FaultKind::Missing)]
    );
}

#[test]
fn what_moves_is_a_mapping_of_its_own() {
    let _alone = alone();
    let Some(recording) = recorded("moves") else {
        return;
    };
    let events = of(&recording, 0);
    let all = calls(&events);
    let [map, protect, grow, shrink, unmap] = all[..] else {
        panic!("{all:?}");
    };
    let (old, new) = (map.made().expect("made"), grow.made().expect("it moves"));
    let at = |mapping, page| Place {
        mapping,
        offset: page * PAGE,
    };
    assert!(matches!(protect, Call::Protect { at: place, .. } if *place == at(old, 4)));
    let remap = |at, pages: u64, new_pages: u64, to| Call::Remap {
        at,
        length: pages * PAGE,
        new_length: new_pages * PAGE,
        to,
    };
    assert_eq!(*grow, remap(at(old, 0), 4, 6, Some(new)));
    assert_eq!(*shrink, remap(at(new, 0), 6, 3, None));
    let length = 3 * PAGE;
    assert_eq!(
        *unmap,
        Call::Unmap {
            at: at(new, 0),
            length
        }
    );
    assert_eq!(
        touched(&events, old),
        [(old, 0, 2, true, FaultKind::Missing)]
    );
    // The pages that were touched have moved too.
    assert_eq!(
        touched(&events, new),
        [(new, 2, 4, true, FaultKind::Missing)]
    );
}

/// Asserts that events are those of the program's `parts`.
fn assert_parts(events: &[What]) {
    let [map, fixed] = maps(events)[..] else {
        panic!("{events:?}");
    };
    let (first, second) = (made(&events[map]), made(&events[fixed]));
    let at = |mapping, page| Place {
        mapping,
        offset: page * PAGE,
    };
    assert!(
        matches!(events[fixed], What::Call { call: Call::Map { over: Some(place), .. }, .. }
            if place == at(first, 4)),
        "{:?}",
        events[fixed]
    );
    let parts = events.iter().find_map(|what| match what {
        What::Call {
            call: Call::Protect { .. },
            parts,
            ..
        } => Some(parts.clone()),
        _ => None,
    });
    let all = calls(events);
    let [_, _, protect, advise, unmap] = all[..] else {
        panic!("{all:?}");
    };
    assert!(
        matches!(protect, Call::Protect { at: place, length, prot }
            if *place == at(first, 2) && *length == 7 * PAGE && prot.write),
        "{protect:?}"
    );
    assert_eq!(
        parts.expect("a call"),
        [(at(second, 0), 4 * PAGE), (at(first, 8), PAGE)]
    );
    let advice = Advice::Discard;
    let length = PAGE;
    assert_eq!(
        *advise,
        Call::Advise {
            at: at(second, 1),
            length,
            advice
        }
    );
    let length = 10 * PAGE;
    assert_eq!(
        *unmap,
        Call::Unmap {
            at: at(first, 0),
            length
        }
    );
    let missing = FaultKind::Missing;
    assert_eq!(
        touched(events, first),
        [(first, 3, 1, true, missing), (first, 8, 1, true, missing)]
    );
    assert_eq!(touched(events, second), [(second, 0, 4, true, missing)]);
    let refused = events.iter().filter_map(|what| match what {
        What::Call { call, error, .. } if *error != 0 => Some((call.name(), *error)),
        _ => None,
    });
    let refused: Vec<(&str, u16)> = refused.collect();
    assert_eq!(refused, [("mmap", libc::EINVAL as u16)]);
}

#[test]
fn a_call_on_several_mappings_has_parts() {
    let _alone = alone();
    if let Some(recording) = recorded("parts") {
        assert_parts(&of(&recording, 0));
        assert_eq!(recording.lost.unknown, 0);
    }
}

#[test]
fn a_program_executed_has_memory_of_its_own() {
    let _alone = alone();
    let Some(recording) = recorded("executes") else {
        return;
    };
    let all: Vec<&What> = recording.events.iter().map(|event| &event.what).collect();
    let exec = all
        .iter()
        .position(|what| **what == What::Exec)
        .expect("a program");
    let (before, after) = all.split_at(exec);
    let before: Vec<u32> = before
        .iter()
        .filter_map(|what| match what {
            What::Call { call, error: 0, .. } | What::Given { call } => call.made(),
            _ => None,
        })
        .collect();
    let given = after
        .iter()
        .filter(|what| matches!(what, What::Given { .. }));
    assert!(given.clone().count() > 5, "{after:?}");
    assert!(given.clone().all(|what| !before.contains(&made(what))));
    assert_parts(&of(&recording, 0));
}

#[test]
fn threads_that_wake_each_other() {
    const ROUNDS: usize = 40;
    let _alone = alone();
    let Some(recording) = recorded(&format!("pipes 0 {ROUNDS}")) else {
        return;
    };
    // The first thread writes when the second sleeps.
    let second = waits(&recording, 1);
    assert_eq!(second.len(), ROUNDS, "{second:?}");
    for (round, wait) in second.iter().enumerate() {
        assert_eq!(*wait, (WaitFor::Pipe, Some((0, round as u32))));
    }
    // A sleeper's end comes after what woke it.
    let mut wakes = [0; 2];
    for event in &recording.events {
        match event.what {
            What::Wake { .. } => wakes[event.thread as usize] += 1,
            What::Wait {
                by: Some((by, count)),
                ..
            } => assert!(count < wakes[by as usize]),
            _ => {}
        }
    }
}

#[test]
fn a_message_that_stays_here_is_a_wake_up_by_its_sender() {
    const ROUNDS: usize = 40;
    let _alone = alone();
    let Some(recording) = recorded(&format!("sockets 0 {ROUNDS}")) else {
        return;
    };
    let second = waits(&recording, 1);
    let by_first = second.iter().filter(|(_, by)| matches!(by, Some((0, _))));
    // An interrupt may deliver some messages.
    assert!(by_first.count() > ROUNDS / 2, "{second:?}");
}

#[test]
fn computing_is_time_on_a_cpu() {
    let _alone = alone();
    let Some(recording) = recorded("computes") else {
        return;
    };
    let all = recording.events.iter();
    let mark = |what: &What| length_of_map(what) == Some(MARK);
    let after: Vec<_> = all.skip_while(|event| !mark(&event.what)).skip(1).collect();
    let sleep = after.iter().find_map(|event| match event.what {
        What::Wait {
            on: WaitFor::Time,
            nanoseconds,
            by: None,
        } => Some(nanoseconds),
        _ => None,
    });
    let sleep = sleep.unwrap_or_else(|| panic!("{after:?}"));
    assert!((50_000_000..200_000_000).contains(&sleep), "{sleep}");
    let computed: u64 = after.iter().map(|event| event.computed).sum();
    // 30 ms, but for what the clock rounds and what recording takes; interrupts add some.
    assert!((27_000_000..45_000_000).contains(&computed), "{computed}");
}

#[test]
fn a_process_may_end_in_the_midst() {
    let _alone = alone();
    let Some(recording) = recorded("ends") else {
        return;
    };
    for thread in 0..2 {
        let events = of(&recording, thread);
        let exits = events.iter().filter(|what| **what == What::Exit).count();
        assert_eq!((exits, events.last()), (1, Some(&What::Exit)));
    }
    assert!(of(&recording, 1).len() > 100);
    assert_eq!(recording.lost.unknown, 0);
}

/// A handler of signals makes calls and faults of its own between those that it interrupts.
#[test]
fn a_handler_interrupts_calls_and_faults() {
    const ROUNDS: usize = 60;
    let _alone = alone();
    let Some(recording) = recorded(&format!("interrupted 0 {ROUNDS}")) else {
        return;
    };
    let events = of(&recording, 0);
    let maps = maps(&events).into_iter().map(|at| &events[at]);
    let maps: Vec<(u64, u32)> = maps
        .filter_map(|what| Some((length_of_map(what)? / PAGE, made(what))))
        .collect();
    let of_length = |pages| maps.iter().filter(move |(length, _)| *length == pages);
    let handled = maps.last().expect("it tells").0 - 1000;
    assert!(handled > ROUNDS as u64, "{handled} signals");
    assert_eq!(of_length(3).count() as u64, handled);
    assert_eq!(of_length(16).count(), ROUNDS * ROUNDS);
    for (pages, touched_pages) in [(3, 1), (16, 16)] {
        for &(_, mapping) in of_length(pages) {
            let faults = touched(&events, mapping);
            let all: u32 = faults.iter().map(|(_, _, count, ..)| count).sum();
            assert_eq!(all, touched_pages, "{faults:?}");
        }
    }
    assert_eq!(recording.lost.unknown, 0);
}

/// The program, which has said that it is ready and waits for a byte; its input and output.
fn waiting(what: &str) -> (Child, ChildStdin, ChildStdout) {
    let mut command = Command::new(program());
    command.args([what, "0", "10"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    let stdin = child.stdin.take().expect("a pipe");
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_exact(&mut [0]).expect("it is ready");
    (child, stdin, stdout)
}

#[test]
fn a_monitor_is_a_thread_of_its_own() {
    const LOOKS: usize = 5;
    let _alone = alone();
    let (mut child, mut stdin, mut stdout) = waiting("monitored");
    let subject = Subject::Running(Whom::Processes(vec![child.id()]));
    let options = Options {
        foreign: true,
        ..Options::default()
    };
    let underway = begun(subject, options);
    stdin.write_all(b"!").expect("it reads");
    stdout
        .read_exact(&mut [0])
        .expect("it has touched its memory");
    let smaps = format!("/proc/{}/smaps", child.id());
    for _ in 0..LOOKS {
        let mut monitor = Command::new("cat");
        let status = monitor.arg(&smaps).stdout(Stdio::null()).status();
        assert!(status.expect("it runs").success());
    }
    stdin.write_all(b"!").expect("it reads");
    assert!(child.wait().expect("it ends").success());
    let Some(recording) = underway.map(ended) else {
        return;
    };
    let holds = recording
        .events
        .iter()
        .filter_map(|event| match event.what {
            What::Hold {
                process: 0,
                write: false,
                nanoseconds,
            } => Some((event.thread, nanoseconds)),
            _ => None,
        });
    let holds: Vec<(u32, u64)> = holds.collect();
    assert!(holds.len() >= LOOKS, "{holds:?}");
    for (thread, nanoseconds) in holds {
        let process = recording.threads[thread as usize].process;
        assert_eq!(recording.processes[process as usize].birth, Birth::Foreign);
        assert!(nanoseconds > 0);
    }
}

#[test]
fn a_process_that_runs_has_given_memory_and_threads() {
    let _alone = alone();
    let (mut child, mut stdin, _stdout) = waiting("attached");
    let subject = Subject::Running(Whom::Processes(vec![child.id()]));
    let underway = begun(subject, Options::default());
    stdin.write_all(b"!").expect("it reads");
    assert!(child.wait().expect("it ends").success());
    let Some(recording) = underway.map(ended) else {
        return;
    };
    assert_eq!((recording.processes.len(), recording.threads.len()), (1, 2));
    let [first, second] = [of(&recording, 0), of(&recording, 1)];
    // The kernel may have put neighbours into one area.
    let unmap = calls(&first).into_iter().find_map(|call| match *call {
        Call::Unmap { at, length } if length == 21 * PAGE => Some(at),
        _ => None,
    });
    let at = unmap.unwrap_or_else(|| panic!("{first:?}"));
    let is_given =
        |what: &What| matches!(what, What::Given { call } if call.made() == Some(at.mapping));
    assert!(first.iter().any(is_given), "{first:?}");
    let page = at.offset / PAGE + 5;
    let new = (at.mapping, page, 2, true, FaultKind::Missing);
    assert_eq!(touched(&first, at.mapping), [new]);
    // It slept when the recording began, and the first thread has woken it.
    let gate = second.iter().find(|what| matches!(what, What::Wait { .. }));
    let woken = matches!(
        gate,
        Some(What::Wait {
            on: WaitFor::Futex,
            by: Some((0, _)),
            ..
        })
    );
    assert!(woken, "{gate:?}");
    let maps = second
        .iter()
        .filter(|what| length_of_map(what) == Some(16 * PAGE));
    assert_eq!(maps.count(), 10);
    // This process, which is none of the recording, has woken the first.
    let is_strangers = |what: &What| {
        matches!(
            what,
            What::Wait {
                on: WaitFor::Pipe,
                by: None,
                ..
            }
        )
    };
    assert!(first.iter().any(is_strangers), "{first:?}");
}
