//! Each workload makes the calls of will-it-scale's loop, no more, no less.

use workloads::{Backing, Call, Counter, Error, Needs, Prot, SIZE, System, Workload};

const PAGE: usize = 4096;
const BASE: usize = 1 << 30;
const BREAK: usize = 0x1000_0000;

/// A call, without the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Map(&'static str),
    Unmap,
    Write(usize, u8),
    Protect(usize, Prot),
    Discard(usize),
    Read(usize),
    Break(usize),
    File,
}
use Event::*;

/// A system with one mapping that records its calls.
#[derive(Default)]
struct Recorder {
    events: Vec<Event>,
    /// Bytes of the mapping; 0 if there is none.
    mapped: usize,
    /// The bytes of the longest mapping that was written.
    touched: usize,
    /// The page that must not be written now.
    read_only: Option<usize>,
    /// The call that fails with ENOMEM.
    fail: Option<Call>,
    /// True if discarding does nothing, as in a kernel that forgets to flush.
    keep_discarded: bool,
    last: u8,
}

impl Recorder {
    fn record(&mut self, call: Call, event: Event) -> Result<(), Error> {
        if self.fail == Some(call) {
            return Err(Error::Failed(call, 12));
        }
        self.events.push(event);
        Ok(())
    }

    fn page(&self, address: usize) -> usize {
        assert!((BASE..BASE + self.mapped).contains(&address));
        (address - BASE) / PAGE
    }
}

impl System for Recorder {
    type File = ();

    fn page_size(&self) -> usize {
        PAGE
    }

    fn map(&mut self, len: usize, prot: Prot, backing: Backing<'_, ()>) -> Result<usize, Error> {
        assert_eq!(prot, Prot::ReadWrite);
        let what = match backing {
            Backing::SharedAnonymous => "shared memory",
            Backing::Anonymous => "anonymous",
            Backing::PrivateFile(()) => "private",
            Backing::SharedFile(()) => "shared",
        };
        self.record(Call::Map, Map(what))?;
        assert_eq!(self.mapped, 0, "the loops keep one mapping");
        self.mapped = len;
        Ok(BASE)
    }

    fn unmap(&mut self, start: usize, len: usize) -> Result<(), Error> {
        assert_eq!((start, len), (BASE, self.mapped));
        self.mapped = 0;
        self.record(Call::Unmap, Unmap)
    }

    fn protect(&mut self, start: usize, len: usize, prot: Prot) -> Result<(), Error> {
        assert_eq!(len, PAGE);
        let page = self.page(start);
        self.read_only = (prot == Prot::Read).then_some(page);
        self.record(Call::Protect, Protect(page, prot))
    }

    fn discard(&mut self, start: usize, len: usize) -> Result<(), Error> {
        assert_eq!(len, PAGE);
        let page = self.page(start);
        if !self.keep_discarded {
            self.last = 0;
        }
        self.record(Call::Discard, Discard(page))
    }

    fn program_break(&mut self) -> Result<usize, Error> {
        Ok(BREAK)
    }

    fn set_program_break(&mut self, to: usize) -> Result<(), Error> {
        self.record(Call::Brk, Break(to - BREAK))
    }

    fn file(&mut self, len: usize) -> Result<(), Error> {
        assert_eq!(len, SIZE);
        self.record(Call::File, File)
    }

    fn write(&mut self, address: usize, value: u8) -> Result<(), Error> {
        let page = self.page(address);
        assert_ne!(self.read_only, Some(page), "a write to what is read-only");
        self.touched = self.touched.max(self.mapped);
        self.last = value;
        self.record(Call::Touch, Write(page, value))
    }

    fn read(&mut self, address: usize) -> Result<u8, Error> {
        let page = self.page(address);
        self.record(Call::Touch, Read(page))?;
        Ok(self.last)
    }
}

/// The workloads that need only memory; features.rs has the others.
fn of_memory() -> impl Iterator<Item = &'static Workload> {
    let all = workloads::all().iter();
    all.filter(|workload| workload.needs.features.is_empty())
}

fn run(name: &str, iterations: u64) -> Vec<Event> {
    run_on_recorder(name, iterations).events
}

fn run_on_recorder(name: &str, iterations: u64) -> Recorder {
    let mut system = Recorder::default();
    let tick = Counter::with_limit(iterations);
    let workload = workloads::find(name).expect("a known workload");
    workload.run(&mut system, &tick).expect("no call fails");
    assert_eq!(tick.get(), iterations);
    assert_eq!(system.mapped, 0, "{name} left a mapping behind");
    system
}

#[test]
fn mmap_workloads_touch_nothing() {
    let round = [Map("anonymous"), Unmap];
    assert_eq!(run("mmap1", 2), [round, round].concat());
    let round = [Map("private"), Unmap];
    assert_eq!(run("mmap2", 2), [&[File][..], &round, &round].concat());
}

#[test]
fn brk1_goes_up_and_down_and_counts_both() {
    let round = [Break(PAGE), Break(0)];
    assert_eq!(run("brk1", 4), [round, round].concat());
}

#[test]
fn page_fault_workloads_write_each_page_once_a_round() {
    let pages = SIZE / PAGE;
    for (name, backing, file) in [
        ("page_fault1", "anonymous", false),
        ("page_fault2", "private", true),
        ("page_fault3", "shared", true),
    ] {
        let mut expected: Vec<Event> = Vec::new();
        expected.extend(file.then_some(File));
        expected.push(Map(backing));
        expected.extend((0..pages).map(|page| Write(page, 0)));
        expected.extend([Unmap, Map(backing), Write(0, 0), Unmap]);
        assert_eq!(run(name, pages as u64 + 1), expected, "{name}");
    }
}

#[test]
fn mprotect1_takes_the_right_to_write_and_gives_it_back() {
    let pages = (2 << 20) / PAGE;
    let round = |page| {
        let [taken, given] = [Prot::Read, Prot::ReadWrite].map(|prot| Protect(page, prot));
        [Write(page, 1), taken, given]
    };
    let laps = (0..pages).chain(0..2).flat_map(round);
    let expected: Vec<Event> = [Map("anonymous")].into_iter().chain(laps).collect();
    let events = run("mprotect1", 2 * (pages as u64 + 2));
    assert_eq!(events, [&expected[..], &[Unmap]].concat());
}

#[test]
fn madvise1_drops_each_page_it_has_written() {
    let round = |page| [Write(page, 1), Discard(page)];
    let expected = [&[Map("anonymous")][..], &round(0), &round(1), &[Unmap]].concat();
    assert_eq!(run("madvise1", 2), expected);
}

#[test]
fn tlb_flush1_reads_back_what_it_dropped() {
    let round = |page| [Write(page, 1), Discard(page), Read(page)];
    let expected = [&[File, Map("private")][..], &round(0), &round(1), &[Unmap]].concat();
    assert_eq!(run("tlb_flush1", 2), expected);
}

#[test]
fn tlb_flush2_does_so_with_the_pages_of_a_mebibyte() {
    let round = |page| [Write(page, 1), Discard(page), Read(page)];
    let pages = (1 << 20) / 4096;
    let lap: Vec<Event> = (0..pages).flat_map(round).collect();
    let again = [&[Unmap, Map("anonymous")][..], &round(0), &[Unmap]].concat();
    let expected = [&[Map("anonymous")][..], &lap, &again].concat();
    assert_eq!(run("tlb_flush2", pages as u64 + 1), expected);
}

#[test]
fn malloc1_writes_the_header_of_each_allocation() {
    let round = [Map("anonymous"), Write(0, 1), Unmap];
    assert_eq!(run("malloc1", 2), [round, round].concat());
}

#[test]
fn tlb_flush1_notices_a_stale_page() {
    let mut system = Recorder {
        keep_discarded: true,
        ..Recorder::default()
    };
    let workload = workloads::find("tlb_flush1").expect("a known workload");
    let error = workload.run(&mut system, &Counter::new()).unwrap_err();
    let (found, expected) = (1, 0);
    assert_eq!(
        error,
        Error::Wrong {
            address: BASE,
            found,
            expected
        }
    );
    assert_eq!(system.mapped, 0);
}

#[test]
fn the_first_failure_ends_the_loop_and_leaves_no_mapping() {
    let mut failures = 0;
    for workload in of_memory() {
        for call in [
            Call::Map,
            Call::Unmap,
            Call::Protect,
            Call::Discard,
            Call::Brk,
            Call::File,
            Call::Touch,
        ] {
            let mut system = Recorder {
                fail: Some(call),
                ..Recorder::default()
            };
            let tick = Counter::with_limit(10);
            match workload.run(&mut system, &tick) {
                Ok(()) => assert_eq!(tick.get(), 10),
                Err(error) => {
                    assert_eq!(error, Error::Failed(call, 12), "{}", workload.name);
                    assert!(tick.get() == 0 || call == Call::Unmap);
                    failures += 1;
                }
            }
            assert_eq!(system.mapped, 0, "{} {call:?}", workload.name);
        }
    }
    // mmap1 2, mmap2, malloc1 and page_fault1 3 each, page_fault2/3 4 each, brk1 1, tlb_flush1 5,
    // madvise1, mprotect1 and tlb_flush2 4 each.
    assert_eq!(failures, 37);
}

#[test]
fn needs_say_what_is_called() {
    for workload in of_memory() {
        let system = run_on_recorder(workload.name, 2);
        let events = &system.events;
        let needs = Needs {
            files: events.contains(&File),
            brk: events.iter().any(|event| matches!(event, Break(_))),
            protect: events.iter().any(|event| matches!(event, Protect(..))),
            discard: events.iter().any(|event| matches!(event, Discard(_))),
            memory: match workload.name {
                "malloc1" => 4096, // of a large mapping
                _ => system.touched,
            },
            features: &[],
        };
        assert_eq!(workload.needs, needs, "{}", workload.name);
    }
}

#[test]
fn a_stopped_counter_ends_the_loop_at_once() {
    let tick = Counter::new();
    tick.stop();
    let mut system = Recorder::default();
    let workload = workloads::find("page_fault1").expect("a known workload");
    assert_eq!(workload.run(&mut system, &tick), Ok(()));
    assert_eq!(tick.get(), 1);
}

#[test]
fn names_are_unique_and_found() {
    for workload in workloads::all() {
        assert_eq!(workloads::find(workload.name), Some(workload));
    }
    assert_eq!(workloads::find("mmap"), None);
}
