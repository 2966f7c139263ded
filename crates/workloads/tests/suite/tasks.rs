//! Workloads whose tasks wait for each other, desktop and near_fault1, end cleanly whichever task
//! stops or fails first, and keep their promises; the player is in time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use workloads::{Backing, Call, Counter, Descriptor, Error, Frame, PERIOD, Prot, System};

const PAGE: usize = 4096;
const COMMON: usize = 1 << 40;

/// The tasks' shared state: pipes and words by task. After any change, all look again.
#[derive(Default)]
struct Shared {
    pipes: BTreeMap<i32, VecDeque<u8>>,
    words: BTreeMap<usize, u8>,
    waits: u64,
    /// Bytes that tasks have mapped.
    mapped: usize,
}

/// A task's handle.
struct Task {
    shared: Arc<(Mutex<Shared>, Condvar)>,
    number: usize,
    tasks: usize,
    calls: usize,
    fail_at: Option<usize>,
    mapped: usize,
    touched: usize,
    now: u64,
    /// The factor by which computing takes longer.
    slowness: u64,
}

impl Task {
    fn new(shared: &Arc<(Mutex<Shared>, Condvar)>, number: usize, tasks: usize) -> Self {
        Task {
            shared: shared.clone(),
            number,
            tasks,
            calls: 0,
            fail_at: None,
            mapped: 0,
            touched: 0,
            now: 0,
            slowness: 1,
        }
    }

    /// Runs `work` on the shared state until it returns something.
    fn ask<R>(
        &mut self,
        call: Call,
        mut work: impl FnMut(&mut Shared) -> Option<R>,
    ) -> Result<R, Error> {
        self.calls += 1;
        if self.fail_at == Some(self.calls) {
            return Err(Error::Failed(call, 12));
        }
        let (shared, changed) = &*self.shared;
        let mut shared = shared.lock().expect("no test panics with it");
        loop {
            if let Some(result) = work(&mut shared) {
                changed.notify_all();
                return Ok(result);
            }
            shared.waits += 1;
            shared = changed.wait(shared).expect("no test panics with it");
        }
    }
}

impl System for Task {
    type File = ();

    fn page_size(&self) -> usize {
        PAGE
    }

    fn map(&mut self, len: usize, _: Prot, _: Backing<'_, ()>) -> Result<usize, Error> {
        self.ask(Call::Map, |shared| {
            shared.mapped += len;
            Some(())
        })?;
        self.mapped += len;
        self.touched = 0;
        Ok(PAGE)
    }

    fn unmap(&mut self, _: usize, len: usize) -> Result<(), Error> {
        self.mapped -= len; // as if it had been: the first error counts
        self.ask(Call::Unmap, |shared| {
            shared.mapped -= len;
            Some(())
        })
    }

    fn protect(&mut self, _: usize, _: usize, _: Prot) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Protect))
    }

    fn discard(&mut self, _: usize, _: usize) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Discard))
    }

    fn program_break(&mut self) -> Result<usize, Error> {
        Err(Error::Unsupported(Call::Brk))
    }

    fn set_program_break(&mut self, _: usize) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Brk))
    }

    fn file(&mut self, _: usize) -> Result<(), Error> {
        Err(Error::Unsupported(Call::File))
    }

    fn write(&mut self, address: usize, value: u8) -> Result<(), Error> {
        self.touched += usize::from(address < COMMON);
        self.ask(Call::Touch, |shared| {
            assert!(address >= COMMON || shared.mapped > 0, "it was unmapped");
            Some(shared.words.insert(address, value))
        })?;
        Ok(())
    }

    fn read(&mut self, address: usize) -> Result<u8, Error> {
        self.ask(Call::Touch, |shared| {
            Some(shared.words.get(&address).copied().unwrap_or(0))
        })
    }

    fn pipe(&mut self) -> Result<[Descriptor; 2], Error> {
        self.pipe_of(self.number)
    }

    fn close(&mut self, _: Descriptor) -> Result<(), Error> {
        Ok(())
    }

    fn write_to(&mut self, to: Descriptor, bytes: &[u8]) -> Result<usize, Error> {
        self.ask(Call::Write, |shared| {
            shared.pipes.entry(to.0).or_default().extend(bytes);
            Some(bytes.len())
        })
    }

    fn read_from(&mut self, from: Descriptor, bytes: &mut [u8]) -> Result<usize, Error> {
        let byte = self.ask(Call::Read, |shared| {
            shared.pipes.get_mut(&from.0)?.pop_front()
        })?;
        bytes[0] = byte;
        Ok(1)
    }

    fn poll_readable(&mut self, from: &[Descriptor]) -> Result<u64, Error> {
        self.ask(Call::Poll, |shared| {
            let waiting =
                |one: &Descriptor| shared.pipes.get(&one.0).is_some_and(|p| !p.is_empty());
            let ready = from.iter().map(waiting).enumerate();
            let bits = ready.fold(0, |bits, (place, is)| bits | u64::from(is) << place);
            (bits != 0).then_some(bits)
        })
    }

    fn futex_wake(&mut self, _: usize, _: u32) -> Result<u32, Error> {
        self.ask(Call::FutexWake, |_| Some(0))
    }

    fn futex_wait(&mut self, address: usize, value: u32) -> Result<bool, Error> {
        self.ask(Call::FutexWait, |shared| {
            let word = shared.words.get(&address).copied().unwrap_or(0);
            (u32::from(word) != value).then_some(true)
        })
    }

    fn number(&self) -> usize {
        self.number
    }

    fn tasks(&self) -> usize {
        self.tasks
    }

    fn companions(&self) -> usize {
        self.tasks
    }

    fn pipe_of(&mut self, task: usize) -> Result<[Descriptor; 2], Error> {
        Ok([Descriptor(task as i32); 2])
    }

    fn common_memory(&mut self) -> Result<usize, Error> {
        Ok(COMMON)
    }

    fn now(&mut self) -> Result<u64, Error> {
        Ok(self.now)
    }

    fn sleep_until(&mut self, time: u64) -> Result<(), Error> {
        self.now = self.now.max(time);
        Ok(())
    }

    fn compute(&mut self, nanoseconds: u64) {
        self.now += self.slowness * nanoseconds;
    }
}

/// Runs desktop with a task for each limit; `fail_at` is task 0's. Returns each task's result, and
/// how often one waited.
fn run(limits: &[u64], fail_at: Option<usize>) -> (Vec<Result<u64, Error>>, u64) {
    let (ended, shared) = run_of("desktop", limits, fail_at.map(|call| (0, call)));
    (ended, shared.waits)
}

/// Runs a workload with a task for each limit; one of them may fail at a call. Returns each task's
/// result, and the state that they leave.
fn run_of(
    name: &str,
    limits: &[u64],
    fails: Option<(usize, usize)>,
) -> (Vec<Result<u64, Error>>, Shared) {
    let shared = Arc::<(Mutex<Shared>, Condvar)>::default();
    let workload = workloads::find(name).expect("a known workload");
    let start = |(number, &limit): (usize, &u64)| {
        let mut task = Task::new(&shared, number, limits.len());
        let fails = fails.filter(|&(task, _)| task == number);
        task.fail_at = fails.map(|(_, call)| call);
        thread::spawn(move || {
            let tick = Counter::with_limit(limit);
            let ran = workload.run(&mut task, &tick);
            assert!(task.mapped == 0 || ran.is_err());
            ran.map(|()| tick.get())
        })
    };
    let tasks: Vec<_> = limits.iter().enumerate().map(start).collect();
    let ended = tasks.into_iter().map(|task| task.join().expect("no panic"));
    let ended = ended.collect();
    let (shared, _) = Arc::into_inner(shared).expect("no task is left");
    (ended, shared.into_inner().expect("no panic"))
}

#[test]
fn threads_fault_in_neighbouring_pages() {
    let (ended, shared) = run_of("near_fault1", &[700; 3], None);
    assert_eq!(ended, vec![Ok(700); 3]);
    let pages = shared.words.keys().copied().filter(|&at| at < COMMON);
    let neighbours = (1..=3 * 700).map(|page| page * PAGE);
    assert!(pages.eq(neighbours), "each page once, and none between");
    assert_eq!(shared.mapped, 0);
}

#[test]
fn threads_fault_in_parts_of_one_mapping() {
    let (ended, shared) = run_of("pft:64K", &[16; 3], None);
    assert_eq!(ended, vec![Ok(16); 3]);
    let pages = shared.words.keys().copied().filter(|&at| at < COMMON);
    assert!(
        pages.eq((1..=3 * 16).map(|page| page * PAGE)),
        "each page once"
    );
    let (ended, shared) = run_of("pft:64K", &[3; 3], None);
    assert_eq!(ended, vec![Ok(3); 3]);
    let pages = shared.words.keys().copied().filter(|&at| at < COMMON);
    let first = |thread: usize| (1..=3).map(move |page| (16 * thread + page) * PAGE);
    assert!(
        pages.eq((0..3).flat_map(first)),
        "the beginnings of three parts"
    );
}

#[test]
fn threads_begin_each_round_together() {
    let round = workloads::find("near_fault1").map(|workload| workload.round(PAGE));
    let limit = round.expect("a known workload") + 5;
    let (ended, shared) = run_of("near_fault1", &[limit; 2], None);
    assert_eq!(ended, vec![Ok(limit); 2]);
    assert_eq!(shared.mapped, 0);
}

#[test]
fn whichever_thread_stops_or_fails_all_end() {
    for limits in [[1, 500, 500], [500, 1, 500], [3, 2, 1]] {
        let (ended, shared) = run_of("near_fault1", &limits, None);
        assert_eq!(ended, limits.map(Ok));
        assert_eq!(shared.mapped, 0);
    }
    for (task, call) in [0, 1]
        .into_iter()
        .flat_map(|task| (1..=40).map(move |call| (task, call)))
    {
        let (ended, _) = run_of("near_fault1", &[2, 300, 300], Some((task, call)));
        assert!(
            matches!(ended[task], Ok(_) | Err(Error::Failed(_, 12))),
            "{ended:?}"
        );
        assert!(ended[2].is_ok(), "{ended:?}");
    }
}

#[test]
fn whoever_stops_first_the_others_go_on() {
    for limits in [
        &[1][..],
        &[600, 600],
        &[1, 700],
        &[700, 1],
        &[300, 5, 400],
        &[2, 9, 300, 20, 1],
    ] {
        let (ended, waits) = run(limits, None);
        let expected: Vec<Result<u64, Error>> = limits.iter().copied().map(Ok).collect();
        assert_eq!(ended, expected);
        assert_eq!(waits == 0, limits.len() == 1, "{limits:?}: {waits} waits");
    }
}

#[test]
fn whoever_fails_the_neighbour_goes_on() {
    // Two events take no fewer calls: each call fails once at each of its places.
    for number in 1..=48 {
        let (ended, _) = run(&[2, 300], Some(number));
        assert_eq!(ended[1], Ok(300), "call {number} of the first failed");
        assert!(matches!(ended[0], Err(Error::Failed(_, 12))));
    }
}

#[test]
fn needs_say_what_is_touched() {
    let workload = workloads::find("desktop").expect("a known workload");
    let mut task = Task::new(&Arc::default(), 0, 1);
    workload
        .run(&mut task, &Counter::with_limit(1))
        .expect("no call fails");
    assert_eq!(workload.needs.memory, task.touched * PAGE);
}

#[test]
fn a_player_that_is_in_time_shows_each_frame() {
    let mut task = Task::new(&Arc::default(), 0, 1);
    let mut frames = Vec::new();
    let played = workloads::play(&mut task, |frame| {
        frames.push(frame);
        frames.len() < 5
    });
    assert_eq!((played, task.mapped), (Ok(()), 0));
    let Frame::Shown(first) = frames[0] else {
        panic!("{frames:?}")
    };
    assert!((3_900_000..=4_000_000).contains(&first), "{first}");
    assert_eq!(frames, [Frame::Shown(first); 5]);
    assert_eq!(task.now, 5 * PERIOD + first);
}

#[test]
fn a_player_that_is_late_skips_what_is_past() {
    let mut task = Task::new(&Arc::default(), 0, 1);
    task.slowness = 10;
    let mut frames = Vec::new();
    let played = workloads::play(&mut task, |frame| {
        frames.push(frame);
        frames.len() < 3
    });
    assert_eq!(played, Ok(()));
    let Frame::Shown(first) = frames[0] else {
        panic!("{frames:?}")
    };
    // The second is past when the first is ready, the third starts 6 ms late.
    let third = Frame::Shown(2 * first - 2 * PERIOD);
    assert_eq!(frames[1..], [Frame::Skipped, third]);
    assert!(frames.iter().all(|frame| frame.is_dropped()));
}
