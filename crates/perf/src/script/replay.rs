//! Events of a script, as if they were recorded now.

use super::functions::Functions;
use super::line::{self, Frame, Header};
use super::pace::Pace;
use crate::account::Account;
use crate::event::{Event, Stamped, Thread};
use crate::recording::{Clock, Recording, Seen, Setting};
use crate::tasks::{Family, Files, Process};
use profile::Hidden;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// The process from which all others descend; its threads are those that run when nothing else
/// does.
const IDLE: u32 = 0;
/// Nanoseconds that events may lie apart: a week.
const LONGEST: u64 = 7 * 24 * 3600 * 1_000_000_000;

/// Turns events into an account.
pub(super) struct Replay {
    account: Account,
    functions: Functions,
    began: u64,
    /// The time of the latest event.
    time: u64,
    /// The threads that are alive, with their processes and names.
    threads: HashMap<u32, (u32, String)>,
    /// Those that are off CPU.
    off: HashSet<u32>,
    clock: Option<Clock>,
    pace: Pace,
    cpus: BTreeSet<u32>,
    /// The processes, with their names and samples.
    pub processes: BTreeMap<u32, (String, u64)>,
    /// Events that mean nothing here, by name.
    unused: BTreeMap<String, u64>,
    sees: Sees,
}

/// What the events showed.
#[derive(Default)]
struct Sees {
    kernel: bool,
    /// Threads that went off CPU.
    switches: u64,
    /// Those that came back without an event that says so.
    unseen: u64,
    contention: bool,
    /// Stacks with callers.
    callers: bool,
}

impl Replay {
    /// Nothing yet; the first event is at `began`.
    pub fn new(began: u64) -> Replay {
        let mut files = Files::default();
        let mut family = Family::default();
        let root = Process {
            name: String::new(),
            image: Functions::image(&mut files),
        };
        family.add(IDLE, root, &[]);
        Replay {
            account: Account::new(family, files, began),
            functions: Functions::default(),
            began,
            time: began,
            threads: HashMap::new(),
            off: HashSet::new(),
            clock: None,
            pace: Pace::default(),
            cpus: BTreeSet::new(),
            processes: BTreeMap::new(),
            unused: BTreeMap::new(),
            sees: Sees::default(),
        }
    }

    /// Takes an event with its stack, from the leaf.
    pub fn take(&mut self, header: &Header<'_>, frames: &[Frame<'_>]) {
        // Events of several CPUs may be printed slightly out of order.
        let time = header.time.max(self.time);
        if time - self.began > LONGEST {
            return;
        }
        self.time = time;
        self.cpus.extend(header.cpu);
        let thread = Thread {
            pid: header.pid.unwrap_or(header.tid),
            tid: header.tid,
        };
        let is_task = thread.tid != IDLE;
        self.sees.callers |= frames.len() > 1;
        match header.event {
            "sched:sched_switch" => self.switched(thread, header, frames),
            "lock:contention_begin" if is_task => self.begins(thread, header, frames),
            "lock:contention_end" if is_task => {
                self.runs(thread, header.comm);
                self.sees.contention = true;
                if let Some(lock) = line::lock(header.rest) {
                    self.put(Event::End { thread, lock });
                }
            }
            "PERF_RECORD_SWITCH" | "PERF_RECORD_SWITCH_CPU_WIDE" => {
                if header.rest.starts_with("IN") {
                    self.returns(thread.tid);
                }
            }
            "PERF_RECORD_EXIT" => {
                if self.threads.contains_key(&thread.tid) {
                    self.exits(thread);
                }
            }
            "PERF_RECORD_LOST" | "PERF_RECORD_LOST_SAMPLES" => {
                let count = header.rest.rsplit(' ').next();
                let count = count.and_then(|count| count.parse().ok()).unwrap_or(1);
                self.put(Event::Lost(count));
            }
            name if name.starts_with("PERF_RECORD_") => {}
            name => match clock(name) {
                Some(clock) if *self.clock.get_or_insert(clock) == clock => {
                    if is_task {
                        self.sampled(thread, header, frames);
                    }
                }
                _ => *self.unused.entry(name.to_owned()).or_default() += 1,
            },
        }
    }

    fn sampled(&mut self, thread: Thread, header: &Header<'_>, frames: &[Frame<'_>]) {
        self.runs(thread, header.comm);
        self.processes.entry(thread.pid).or_default().1 += 1;
        self.pace.sample(header);
        self.sees.kernel |= frames.iter().any(|frame| frame.is_kernel);
        let chain = self.functions.chain(frames);
        let cpu = header.cpu.unwrap_or_default();
        self.put(Event::Sample { thread, cpu, chain });
    }

    fn begins(&mut self, thread: Thread, header: &Header<'_>, frames: &[Frame<'_>]) {
        self.runs(thread, header.comm);
        self.sees.contention = true;
        if let Some((lock, flags)) = line::begin(header.rest) {
            let chain = self.functions.chain(frames);
            self.put(Event::Begin {
                thread,
                lock,
                flags,
                chain,
            });
        }
    }

    fn switched(&mut self, thread: Thread, header: &Header<'_>, frames: &[Frame<'_>]) {
        let Some((state, next)) = line::switch(header.rest) else {
            return;
        };
        if thread.tid != IDLE {
            self.meet(thread, header.comm);
            self.sees.switches += 1;
            self.sees.unseen += u64::from(self.off.contains(&thread.tid));
            match state.bytes().next() {
                Some(b'X' | b'Z') => self.exits(thread),
                letter => {
                    self.off.insert(thread.tid);
                    let chain = self.functions.chain(frames);
                    // A thread that is preempted is in state R.
                    let preempted = letter == Some(b'R');
                    let state = i64::from(!preempted);
                    self.put(Event::Leave {
                        thread,
                        state,
                        chain,
                    });
                    self.put(Event::Off { thread, preempted });
                }
            }
        }
        self.returns(next);
    }

    /// A thread is seen on a CPU.
    fn runs(&mut self, thread: Thread, comm: &str) {
        self.meet(thread, comm);
        self.sees.unseen += u64::from(self.off.contains(&thread.tid));
        self.returns(thread.tid);
    }

    /// A thread that was off CPU is back.
    fn returns(&mut self, tid: u32) {
        if self.off.remove(&tid) {
            let pid = self.threads.get(&tid).map_or(tid, |(pid, _)| *pid);
            let thread = Thread { pid, tid };
            self.put(Event::Resume { thread });
        }
    }

    /// Watches a thread from its first event on, under its present name.
    fn meet(&mut self, thread: Thread, comm: &str) {
        match self.threads.get_mut(&thread.tid) {
            Some((_, name)) if name == comm => return,
            Some((_, name)) => comm.clone_into(name),
            None => {
                let known = (thread.pid, comm.to_owned());
                self.threads.insert(thread.tid, known);
                // Of a process whose first thread is not met, any thread's name must do.
                let parent = match self.account.family.has(thread.pid) {
                    true => thread.pid,
                    false => IDLE,
                };
                let numbered = |number| Thread {
                    pid: number,
                    tid: number,
                };
                let parent = numbered(parent);
                let child = thread;
                self.put(Event::Fork { child, parent });
                if parent.pid == IDLE && thread.pid != thread.tid {
                    self.name(numbered(thread.pid), comm);
                }
            }
        }
        self.name(thread, comm);
    }

    fn name(&mut self, thread: Thread, comm: &str) {
        let process = self.processes.entry(thread.pid).or_default();
        if thread.pid == thread.tid || process.0.is_empty() {
            comm.clone_into(&mut process.0);
        }
        self.put(Event::Comm {
            thread,
            name: comm.to_owned(),
            exec: false,
        });
    }

    fn exits(&mut self, thread: Thread) {
        self.threads.remove(&thread.tid);
        self.returns(thread.tid);
        self.put(Event::Exit { thread });
    }

    fn put(&mut self, event: Event) {
        let time = self.time;
        self.account.take(Stamped { time, event });
    }

    /// The recording up to the last event.
    pub fn recording(self) -> Recording {
        let missing = self.missing();
        let functions = self.functions;
        let cut = self.account.end(self.time);
        let setting = Setting {
            clock: self.clock.unwrap_or(Clock::CpuClock),
            sample_seconds: self.pace.seconds(self.clock),
            cpus: self.cpus.len(),
            sees_all: false,
            sees_contention: self.sees.contention,
            hidden: Hidden {
                kernel: !self.sees.kernel,
                waits: self.sees.switches == 0,
            },
        };
        let stacks = cut.stacks.into_iter();
        Recording::new(Seen {
            setting,
            span: Duration::from_nanos(self.time - self.began),
            used: Duration::ZERO,
            stolen: Duration::ZERO,
            throttled: None,
            missing,
            stacks: Arc::new(stacks.map(|stack| functions.named(stack)).collect()),
            words: HashMap::new(),
            totals: cut.totals,
        })
    }

    /// What the file does not tell, and how to record it.
    fn missing(&self) -> Vec<String> {
        let sees = &self.sees;
        let all = [
            (
                self.clock.is_none(),
                "work: the file has no samples of cycles or a clock (perf record -e cpu-clock)",
            ),
            (
                !sees.callers,
                "callers, and with them the names of locks: the file has no call chains (perf \
                 record -g)",
            ),
            (
                sees.switches == 0,
                "time off CPU: the file has no switches (perf record -e sched:sched_switch)",
            ),
            (
                sees.unseen > sees.switches / 50,
                "when threads came back onto a CPU: they did so at the latest when they are next \
                 seen, and times off CPU last until then (perf record -a without -F, which also \
                 thins out switches, or --switch-events)",
            ),
            (
                !sees.contention,
                "waits for locks of the kernel (perf record -e lock:contention_begin,\
                 lock:contention_end)",
            ),
        ];
        let missing = all.into_iter().filter(|(is_missing, _)| *is_missing);
        let missing = missing.map(|(_, what)| what.to_owned());
        let unused = self.unused.iter();
        let unused: Vec<String> = unused.map(|(name, n)| format!("{name} ({n})")).collect();
        let unused = (!unused.is_empty()).then(|| {
            format!(
                "events of the file that are not used: {}",
                unused.join(", ")
            )
        });
        missing.chain(unused).collect()
    }
}

/// The clock that an event samples.
fn clock(event: &str) -> Option<Clock> {
    // `cpu_core/cycles/P`, `cycles:ppp`.
    let name = event.split('/').nth(1).unwrap_or(event);
    match name.split(':').next()? {
        "cycles" | "cpu-cycles" => Some(Clock::Cycles),
        "cpu-clock" | "task-clock" => Some(Clock::CpuClock),
        _ => None,
    }
}
