//! The events of the kernel, on all CPUs, in the order of time.

use super::calls;
use super::raw::{Fields, Raw, RawDecoder, Source};
use crate::event::{
    Attributes, Counter, Decoder, Ring, Target, Tracefs, has_first_numbers, records,
};
use crate::session::{Order, candidates, is_absent, now};
use std::collections::HashMap;
use std::ffi::CStr;
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
    filter: Option<std::ffi::CString>,
}

impl Tracer {
    /// Opens all events, disabled.
    pub fn open() -> io::Result<Tracer> {
        has_first_numbers()?;
        let tracefs = Tracefs::open()?;
        let points = points(&tracefs)?;
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

fn points(tracefs: &Tracefs) -> io::Result<Vec<Point>> {
    /// Of threads that sleep, stop or end; the bit of preemption is not among these.
    const SLEEPS: &CStr = c"prev_state & 255 && prev_pid != 0";
    /// `TRACE_FLAG_SOFTIRQ`.
    const SOFT: &CStr = c"common_flags & 16";
    let hits = |source, name: &str| -> io::Result<Point> {
        Ok(Point {
            source,
            attributes: Attributes::hits(tracefs.number(name)?),
            filter: None,
        })
    };
    let filtered = |source, name, filter| -> io::Result<Point> {
        Ok(Point {
            filter: Some(filter),
            ..hits(source, name)?
        })
    };
    let resolved = |major| Point {
        source: Source::Resolved,
        attributes: Attributes::resolved(major),
        filter: None,
    };
    let mut sleep = filtered(Source::Sleep, "sched/sched_switch", SLEEPS.to_owned())?;
    sleep.attributes = sleep.attributes.with_kernel_stack(SLEEP_DEPTH);
    let mut soft = filtered(Source::SoftWaking, "sched/sched_waking", SOFT.to_owned())?;
    soft.attributes = soft.attributes.with_kernel_stack(SOFT_DEPTH);
    Ok(vec![
        filtered(Source::Enter, "raw_syscalls/sys_enter", calls::filter())?,
        filtered(Source::Return, "raw_syscalls/sys_exit", calls::filter())?,
        hits(Source::UserFault, "exceptions/page_fault_user")?,
        hits(Source::KernelFault, "exceptions/page_fault_kernel")?,
        resolved(false),
        resolved(true),
        sleep,
        hits(Source::Waking, "sched/sched_waking")?,
        soft,
        hits(Source::Birth, "task/task_newtask")?,
    ])
}
