//! The events available here.

use super::cpus::{candidates, is_absent};
use super::descriptors::raise_limit;
use crate::event::{
    Attributes, Counter, Decoder, HoldTracepoints, Ring, Scope, Source, Target, Tracefs,
    Tracepoints, WakeTracepoint, sampled_depth,
};
use crate::support::{ALLOWS_ALL, remedy};
use crate::{Clock, Error, Options};
use std::collections::HashMap;
use std::io;

/// Pages of the rings for births, deaths, names and mappings, which a flood of waits cannot push
/// out.
const TASK_PAGES: usize = 64;
/// Pages of the rings for events that tell who holds locks: a flood of them pushes out nothing
/// else.
const HOLD_PAGES: usize = 128;
/// Pages of a ring where locked memory is short.
const UNPRIVILEGED_PAGES: usize = 64;

/// Disabled events, and the rings they write to.
pub(crate) struct Opened {
    pub clock: Clock,
    pub decoder: Decoder,
    /// The unavailable parts, and how to allow them.
    pub missing: Vec<String>,
    pub rings: Vec<Ring>,
    /// Events to poll, one per ring: those that report births, deaths, names and mappings,
    /// interleaved with clocks where samples have rings of their own.
    pub leaders: Vec<i32>,
    /// The CPUs that there are.
    pub cpus: Vec<u32>,
    /// True if waits for locks and time off CPU are traced.
    pub sees_waits: bool,
    /// True if the kernel's locks have tracepoints, which are requested.
    pub sees_contention: bool,
    /// True if something can be recorded that tells who holds locks.
    pub sees_holds: bool,
    tasks: Vec<Counter>,
    counters: Vec<Counter>,
    /// The tracepoint of switches, by CPU.
    switches: Vec<Counter>,
    /// Acquisitions and releases of `mmap_lock`, and wake-ups.
    holds: Vec<Counter>,
    /// Clocks of threads, where these are sampled one by one.
    threads: HashMap<u32, Vec<Counter>>,
    /// The numbers of closed events: those that can be forgotten next, and those closed since.
    closed: (Vec<u64>, Vec<u64>),
    plan: Plan,
    attributes: Attributes,
}

/// Which threads are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    /// All that run; sorted out later.
    Cpus,
    /// Given threads, one by one.
    Threads(Scope),
}

impl Opened {
    /// Opens the best events that the kernel allows, on all CPUs on which the threads `tids` and
    /// others may run.
    pub fn open(options: &Options, tids: &[u32]) -> Result<Opened, Error> {
        let cpus = candidates(tids).map_err(Error::system("finding the CPUs"))?;
        let (plan, clock) = best(options.frequency, &cpus)?;
        let scope = match plan {
            Plan::Cpus => Scope::All,
            Plan::Threads(scope) => scope,
        };
        let mut opened = Opened {
            clock,
            decoder: Decoder {
                depth: sampled_depth(),
                ..Decoder::default()
            },
            missing: missing(plan),
            rings: Vec::new(),
            leaders: Vec::new(),
            cpus,
            sees_waits: false,
            sees_contention: false,
            sees_holds: false,
            tasks: Vec::new(),
            counters: Vec::new(),
            switches: Vec::new(),
            holds: Vec::new(),
            threads: HashMap::new(),
            closed: Default::default(),
            plan,
            attributes: Attributes::clock(clock, options.frequency, scope),
        };
        opened
            .open_tasks(options)
            .map_err(Error::system("opening events for tasks"))?;
        match plan {
            Plan::Cpus => {
                opened
                    .open_clocks(options)
                    .map_err(Error::system("opening the sampling clock"))?;
                opened.open_tracepoints(options);
            }
            Plan::Threads(_) => raise_limit(),
        }
        Ok(opened)
    }

    /// Returns true if all threads are seen, without opening events for each.
    pub fn sees_all(&self) -> bool {
        self.plan == Plan::Cpus
    }

    /// Returns true if kernel stacks are seen.
    pub fn sees_kernel(&self) -> bool {
        self.plan != Plan::Threads(Scope::User)
    }

    /// Starts reporting births, deaths, names and mappings.
    pub fn watch_tasks(&self) -> io::Result<()> {
        self.tasks.iter().try_for_each(Counter::enable)
    }

    /// Starts or stops recording what tells who holds locks.
    pub fn record_holds(&self, on: bool) -> io::Result<()> {
        let switch = if on {
            Counter::enable
        } else {
            Counter::disable
        };
        self.holds.iter().try_for_each(switch)
    }

    /// Makes each `period`th switch of a CPU have its stack, by the number of the CPU's ring.
    pub fn record_switches(&self, ring: usize, period: u64) -> io::Result<()> {
        let at = ring.checked_sub(self.tasks.len());
        match at.and_then(|at| self.switches.get(at)) {
            Some(counter) => counter.set_period(period),
            None => Ok(()),
        }
    }

    /// Starts all other events, except those that tell who holds locks.
    pub fn enable(&self) -> io::Result<()> {
        let threads = self.threads.values().flatten();
        self.counters
            .iter()
            .chain(&self.switches)
            .chain(threads)
            .try_for_each(Counter::enable)
    }

    /// Stops all events.
    pub fn disable(&self) -> io::Result<()> {
        let threads = self.threads.values().flatten();
        let counters = self
            .counters
            .iter()
            .chain(&self.holds)
            .chain(&self.switches);
        let mut all = counters.chain(&self.tasks).chain(threads);
        all.try_for_each(Counter::disable)
    }

    /// Samples the threads of a process, where threads are sampled one by one; at once if
    /// `running`. Some may be gone: it is an error only if the kernel refuses all.
    pub fn add_process(&mut self, threads: &[u32], running: bool) -> io::Result<()> {
        if self.sees_all() {
            return Ok(());
        }
        let added = threads.iter().map(|&tid| self.add_thread(tid, running));
        let added: Vec<io::Result<()>> = added.collect();
        if added.iter().any(Result::is_ok) {
            Ok(())
        } else {
            added.into_iter().collect()
        }
    }

    /// Samples one more thread, where threads are sampled one by one; at once if `running`.
    pub fn add_thread(&mut self, tid: u32, running: bool) -> io::Result<()> {
        let mut counters = Vec::new();
        for (&cpu, leader) in self.cpus.iter().zip(&self.tasks) {
            let attributes = self.attributes.with_tasks();
            let counter = Counter::open(&attributes, Target::Thread(tid, cpu))?;
            counter.write_to(leader)?;
            if running {
                counter.enable()?;
            }
            self.decoder.sources.insert(counter.id(), Source::Clock);
            counters.push(counter);
        }
        self.threads.insert(tid, counters);
        Ok(())
    }

    /// Closes the events of a dead thread; its records can still be decoded.
    pub fn drop_thread(&mut self, tid: u32) {
        let closed = self.threads.remove(&tid).into_iter().flatten();
        self.closed.1.extend(closed.map(|counter| counter.id()));
    }

    /// Forgets events that had been closed at the last call: all their records have been read.
    pub fn forget_closed(&mut self) {
        let since = std::mem::take(&mut self.closed.1);
        for id in std::mem::replace(&mut self.closed.0, since) {
            self.decoder.sources.remove(&id);
        }
    }

    fn open_tasks(&mut self, options: &Options) -> io::Result<()> {
        let pages = match self.plan {
            Plan::Cpus => TASK_PAGES,
            Plan::Threads(_) => options.ring_pages.min(UNPRIVILEGED_PAGES),
        };
        let mut absent = None;
        for cpu in std::mem::take(&mut self.cpus) {
            let target = match self.plan {
                Plan::Cpus => Target::Cpu(cpu),
                // A thread of this process, which outlives the recording.
                Plan::Threads(_) => Target::Thread(own_thread(), cpu),
            };
            let attributes = waking(Attributes::tasks(), pages);
            let counter = match Counter::open(&attributes, target) {
                Err(error) if is_absent(&error) => {
                    absent = Some(error);
                    continue;
                }
                opened => opened?,
            };
            self.add_ring(&counter, pages)?;
            self.tasks.push(counter);
            self.cpus.push(cpu);
        }
        match absent.filter(|_| self.cpus.is_empty()) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn open_clocks(&mut self, options: &Options) -> io::Result<()> {
        let mut attributes = waking(self.attributes, options.ring_pages);
        if options.off_cpu {
            attributes = attributes.with_switches();
        }
        for cpu in self.cpus.clone() {
            let counter = Counter::open(&attributes, Target::Cpu(cpu))?;
            self.add_ring(&counter, options.ring_pages)?;
            self.decoder.sources.insert(counter.id(), Source::Clock);
            self.counters.push(counter);
        }
        Ok(())
    }

    /// Opens the requested tracepoints; failures go to `missing`.
    fn open_tracepoints(&mut self, options: &Options) {
        if !options.locks && !options.off_cpu {
            return;
        }
        let opened = Tracefs::open().and_then(|tracefs| {
            self.open_waits(&tracefs, options)?;
            Ok(tracefs)
        });
        self.sees_waits = opened.is_ok() && options.locks && options.off_cpu;
        match opened {
            Err(error) => self.missing.push(format!(
                "kernel lock waits and time off CPU: tracepoints cannot be opened ({error}); {}, \
                 and the kernel must have tracefs",
                remedy(ALLOWS_ALL)
            )),
            Ok(tracefs) if options.locks => {
                self.open_holds(&tracefs).unwrap_or_else(|error| {
                    self.missing.push(format!(
                        "when mmap_lock is acquired and released: the kernel lacks the \
                         tracepoints of 5.11 ({error}); its holders are seen where they wake others"
                    ));
                });
                self.open_wakes(&tracefs).unwrap_or_else(|error| {
                    self.missing.push(format!(
                        "holders of other locks: no wake-up is seen ({error})"
                    ));
                });
                self.sees_holds = !self.holds.is_empty();
            }
            Ok(_) => {}
        }
    }

    fn open_waits(&mut self, tracefs: &Tracefs, options: &Options) -> io::Result<()> {
        let points = Tracepoints::find(tracefs)?;
        self.decoder.state = Some(points.state);
        if options.off_cpu {
            self.switches = self.opened(points.switch, Source::Switch)?;
        }
        match points.contention {
            Ok(contention) if options.locks => {
                self.decoder.contention = Some(contention.fields);
                let begins = self.opened(contention.begin, Source::Begin)?;
                let ends = self.opened(contention.end, Source::End)?;
                self.counters.extend(begins.into_iter().chain(ends));
                self.sees_contention = true;
            }
            Err(error) if options.locks => self.missing.push(format!(
                "when waits for kernel locks begin and end: the kernel lacks the tracepoints of \
                 5.19 ({error}); they are seen where threads go off CPU, and spin in samples"
            )),
            _ => {}
        }
        Ok(())
    }

    /// Opens acquisitions and releases of `mmap_lock`, with rings of their own.
    fn open_holds(&mut self, tracefs: &Tracefs) -> io::Result<()> {
        let points = HoldTracepoints::find(tracefs)?;
        self.decoder.hold_fields = Some(points.fields);
        self.open_of_holds(&[
            (points.acquired, Source::Acquire),
            (points.released, Source::Release),
        ])
    }

    /// Opens wake-ups, with rings of their own.
    fn open_wakes(&mut self, tracefs: &Tracefs) -> io::Result<()> {
        let point = WakeTracepoint::find(tracefs)?;
        self.decoder.woken = Some(point.woken);
        self.open_of_holds(&[(point.number, Source::Wake)])
    }

    /// Opens tracepoints that share a ring for each CPU.
    fn open_of_holds(&mut self, points: &[(u64, Source)]) -> io::Result<()> {
        for cpu in self.cpus.clone() {
            let first = self.holds.len();
            for &(id, source) in points {
                let attributes = waking(Attributes::tracepoint(id, source), HOLD_PAGES);
                let counter = Counter::open(&attributes, Target::Cpu(cpu))?;
                match self.holds.get(first) {
                    Some(leader) => counter.write_to(leader)?,
                    None => self.add_ring(&counter, HOLD_PAGES)?,
                }
                self.decoder.sources.insert(counter.id(), source);
                self.holds.push(counter);
            }
        }
        Ok(())
    }

    /// Opens a tracepoint on each CPU. Its records go to the rings of the clocks.
    fn opened(&mut self, id: u64, source: Source) -> io::Result<Vec<Counter>> {
        let attributes = Attributes::tracepoint(id, source);
        let mut opened = Vec::new();
        for (index, &cpu) in self.cpus.iter().enumerate() {
            let counter = Counter::open(&attributes, Target::Cpu(cpu))?;
            // The clocks were opened first, one per CPU.
            counter.write_to(&self.counters[index])?;
            self.decoder.sources.insert(counter.id(), source);
            opened.push(counter);
        }
        Ok(opened)
    }

    fn add_ring(&mut self, leader: &Counter, pages: usize) -> io::Result<()> {
        self.rings.push(Ring::of(leader, pages)?);
        self.leaders.push(leader.as_raw_fd());
        Ok(())
    }
}

/// The number of the calling thread.
pub(crate) fn own_thread() -> u32 {
    // SAFETY: the call takes no arguments.
    unsafe { libc::gettid() as u32 }
}

/// The first plan and clock that the kernel accepts.
fn best(frequency: u32, cpus: &[u32]) -> Result<(Plan, Clock), Error> {
    let plans = [
        Plan::Cpus,
        Plan::Threads(Scope::All),
        Plan::Threads(Scope::User),
    ];
    let mut refused = None;
    for plan in plans {
        let target = |cpu| match plan {
            Plan::Cpus => Target::Cpu(cpu),
            Plan::Threads(_) => Target::Thread(own_thread(), cpu),
        };
        let scope = match plan {
            Plan::Cpus => Scope::All,
            Plan::Threads(scope) => scope,
        };
        for clock in [Clock::Cycles, Clock::CpuClock] {
            let attributes = Attributes::clock(clock, frequency, scope);
            // The first CPUs may be absent.
            for &cpu in cpus {
                match Counter::open(&attributes, target(cpu)) {
                    Ok(_) => return Ok((plan, clock)),
                    Err(error) => {
                        let is_absent = is_absent(&error);
                        refused = Some(error);
                        if !is_absent {
                            break;
                        }
                    }
                }
            }
        }
    }
    Err(Error::Refused(
        refused.unwrap_or_else(|| io::ErrorKind::Unsupported.into()),
    ))
}

fn missing(plan: Plan) -> Vec<String> {
    let how = remedy(ALLOWS_ALL);
    let waits = "kernel lock waits and time off CPU: tracepoints need root or CAP_PERFMON; ";
    let kernel = "kernel stacks: sampling the kernel is not allowed here; ";
    let young = "what ran in a thread's first moments, and the CPU time of others: \
                 threads are watched one by one; ";
    let missing: &[&str] = match plan {
        Plan::Cpus => &[],
        Plan::Threads(Scope::All) => &[waits, young],
        Plan::Threads(Scope::User) => &[kernel, waits, young],
    };
    missing.iter().map(|what| format!("{what}{how}")).collect()
}

/// Wakes the reader when a quarter of the ring is full.
fn waking(attributes: Attributes, pages: usize) -> Attributes {
    attributes.waking_at((pages.next_power_of_two() * 1024) as u32)
}
