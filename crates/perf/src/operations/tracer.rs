//! The events of the kernel, on all CPUs, in the order of time.

use super::calls;
use super::raw::{Fields, Raw, RawDecoder, Source};
use crate::event::{
    Attributes, Counter, Decoder, Ring, Target, Tracefs, has_first_numbers, records,
};
use crate::session::{Order, candidates, is_absent, now};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io;

/// Pages of a CPU's ring at most: 16 MiB, some 150,000 events.
const PAGES: usize = 4096;
/// Pages of all rings together.
const ALL_PAGES: usize = 1 << 17;
/// Addresses of the stack of a thread that goes to sleep: the function that sleeps, and those of
/// the scheduler below it.
const SLEEP_DEPTH: u16 = 16;
/// Addresses of the stack of a soft interrupt: the network is deep.
const SOFT_DEPTH: u16 = 96;

/// Opened events and their rings.
pub(super) struct Tracer {
    decoder: RawDecoder,
    counters: Vec<Counter>,
    rings: Vec<Ring>,
    /// An event to poll for each ring.
    pub leaders: Vec<i32>,
    buffer: Vec<u8>,
    order: Order<Raw>,
}

/// A tracepoint to open on each CPU.
struct Point {
    source: Source,
    attributes: Attributes,
    filter: Option<CString>,
}

impl Point {
    /// All hits of the tracepoint `name`.
    fn hits(tracefs: &Tracefs, source: Source, name: &str) -> io::Result<Point> {
        Ok(Point {
            source,
            attributes: Attributes::hits(tracefs.number(name)?),
            filter: None,
        })
    }

    fn filtered(self, filter: &CStr) -> Point {
        Point {
            filter: Some(filter.to_owned()),
            ..self
        }
    }
}

impl Tracer {
    /// Opens all events, disabled; those of locks of memory if `foreign`.
    pub fn open(foreign: bool) -> io::Result<Tracer> {
        has_first_numbers()?;
        let tracefs = Tracefs::open()?;
        let mut points = points(&tracefs)?;
        if foreign {
            points.extend(locks(&tracefs)?);
        }
        let mut tracer = Tracer {
            decoder: RawDecoder {
                sources: HashMap::new(),
                fields: Fields::find(&tracefs)?,
                others: Decoder::default(),
            },
            counters: Vec::new(),
            rings: Vec::new(),
            leaders: Vec::new(),
            buffer: Vec::new(),
            order: Order::default(),
        };
        let cpus = candidates(&[])?;
        let pages = (ALL_PAGES / cpus.len().next_power_of_two()).min(PAGES);
        for cpu in cpus {
            tracer.open_on(cpu, pages, &points)?;
        }
        Ok(tracer)
    }

    fn open_on(&mut self, cpu: u32, pages: usize, points: &[Point]) -> io::Result<()> {
        // Wakes the reader when a quarter of the ring is full.
        let tasks = Attributes::tasks().with_data().with_switches();
        let tasks = tasks.waking_at(pages as u32 * 1024);
        let leader = match Counter::open(&tasks, Target::Cpu(cpu)) {
            Err(error) if is_absent(&error) => return Ok(()),
            opened => opened?,
        };
        self.rings.push(Ring::of(&leader, pages)?);
        self.leaders.push(leader.as_raw_fd());
        for point in points {
            let attributes = point.attributes.waking_at(pages as u32 * 1024);
            let counter = Counter::open(&attributes, Target::Cpu(cpu))?;
            if let Some(filter) = &point.filter {
                counter.set_filter(filter)?;
            }
            counter.write_to(&leader)?;
            self.decoder.sources.insert(counter.id(), point.source);
            self.counters.push(counter);
        }
        self.counters.push(leader);
        Ok(())
    }

    pub fn enable(&self) -> io::Result<()> {
        self.counters.iter().try_for_each(Counter::enable)
    }

    pub fn disable(&self) -> io::Result<()> {
        self.counters.iter().try_for_each(Counter::disable)
    }

    /// Reads all rings. Returns the time at which it began.
    pub fn read(&mut self) -> u64 {
        let begun = now();
        for ring in &mut self.rings {
            self.buffer.clear();
            ring.read(&mut self.buffer);
            let events = records(&self.buffer).filter_map(|record| self.decoder.event(record));
            events.for_each(|event| self.order.add(event));
        }
        begun
    }

    /// The events up to `horizon`, in the order of time.
    pub fn take_until(&mut self, horizon: u64) -> impl Iterator<Item = crate::event::Stamped<Raw>> {
        self.order.take_until(horizon)
    }
}

/// The tracepoints of programs.
fn points(tracefs: &Tracefs) -> io::Result<Vec<Point>> {
    /// Of threads that sleep, stop or end; the bit of preemption is not among these.
    const SLEEPS: &CStr = c"prev_state & 255 && prev_pid != 0";
    /// Not in an interrupt: there, a profiler that follows a thread's frames meets pages that are
    /// not mapped, and goes on without them.
    const OF_THREADS: &CStr = c"!(common_flags & 88)";
    /// `TRACE_FLAG_SOFTIRQ`.
    const SOFT: &CStr = c"common_flags & 16";
    let hits = |source, name| Point::hits(tracefs, source, name);
    let resolved = |major| Point {
        source: Source::Resolved,
        attributes: Attributes::resolved(major),
        filter: None,
    };
    let mut sleep = hits(Source::Sleep, "sched/sched_switch")?.filtered(SLEEPS);
    sleep.attributes = sleep.attributes.with_kernel_stack(SLEEP_DEPTH);
    let mut soft = hits(Source::SoftWaking, "sched/sched_waking")?.filtered(SOFT);
    soft.attributes = soft.attributes.with_kernel_stack(SOFT_DEPTH);
    Ok(vec![
        hits(Source::Enter, "raw_syscalls/sys_enter")?.filtered(&calls::filter()),
        hits(Source::Return, "raw_syscalls/sys_exit")?.filtered(&calls::filter()),
        hits(Source::UserFault, "exceptions/page_fault_user")?,
        hits(Source::KernelFault, "exceptions/page_fault_kernel")?.filtered(OF_THREADS),
        resolved(false),
        resolved(true),
        sleep,
        hits(Source::Waking, "sched/sched_waking")?,
        soft,
        hits(Source::Birth, "task/task_newtask")?,
    ])
}

/// Those of locks of memory, since Linux 5.11.
fn locks(tracefs: &Tracefs) -> io::Result<[Point; 2]> {
    // A program locks its own memory for writing as a rule, others lock it for reading.
    const READS: &CStr = c"write == 0";
    let point = |source, name| Point::hits(tracefs, source, name);
    Ok([
        point(Source::Lock, "mmap_lock/mmap_lock_acquire_returned")?.filtered(READS),
        point(Source::Unlock, "mmap_lock/mmap_lock_released")?.filtered(READS),
    ])
}
