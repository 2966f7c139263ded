//! What the kernel reports of memory operations, undigested.

use crate::event::{
    Decoder, Event, Field, HoldFields, HoldTracepoints, Reader, Record, Stamped, Thread, Tracefs,
};
use perf_event_open_sys::bindings as sys;
use std::collections::HashMap;
use std::io;

/// The kind of an event's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// `raw_syscalls:sys_enter`.
    Enter,
    /// `raw_syscalls:sys_exit`.
    Return,
    /// `exceptions:page_fault_user`.
    UserFault,
    /// `exceptions:page_fault_kernel`.
    KernelFault,
    /// The end of a fault, whether it needed I/O or not.
    Resolved,
    /// `sched:sched_switch` of threads that go to sleep, with the kernel's part of the stack.
    Sleep,
    /// `sched:sched_waking`.
    Waking,
    /// The same in soft interrupts, with the kernel's part of the stack.
    SoftWaking,
    /// `task:task_newtask`.
    Birth,
    /// `mmap_lock:mmap_lock_acquire_returned` of readers.
    Lock,
    /// `mmap_lock:mmap_lock_released` of readers.
    Unlock,
}

/// What `thread`, which was running, did.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub thread: Thread,
    pub what: Happened,
}

#[derive(Clone, Debug)]
pub(super) enum Happened {
    /// It calls the kernel.
    Enter { call: i64, arguments: [u64; 6] },
    /// The call returns.
    Return { call: i64, result: i64 },
    Fault {
        address: u64,
        /// As the processor pushes it on x86.
        code: u64,
        in_kernel: bool,
    },
    /// The fault has been resolved.
    Resolved,
    /// It is about to sleep, here.
    Sleep(Box<[u64]>),
    /// It wakes the thread `woken`, or an interrupt does.
    Waking { woken: u32, by: Waker },
    /// The thread that it has just started was started with these flags of `clone`.
    Birth { flags: u64 },
    /// It has locked an address space for reading.
    Locked { space: u64 },
    /// It has unlocked it.
    Unlocked { space: u64 },
    /// A call or `execve` mapped memory.
    Mapped(Mapped),
    /// Switches, births, deaths, names, losses.
    Other(Event),
}

/// Who wakes a thread.
#[derive(Clone, Debug)]
pub(super) enum Waker {
    /// The thread that runs.
    Thread,
    Interrupt,
    /// A soft interrupt with this stack: a thread's own if it sends a message that stays on this
    /// computer, or one that came in between.
    Soft(Box<[u64]>),
}

/// A new mapping.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Mapped {
    pub start: u64,
    pub length: u64,
    pub offset: u64,
    /// The file's device and inode.
    pub inode: (u64, u64),
    /// As `mmap` takes them.
    pub prot: u32,
    pub flags: u32,
    pub path: String,
}

/// The fields that are read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    call: Field,
    /// Of six words.
    arguments: usize,
    returning: Field,
    result: Field,
    address: Field,
    code: Field,
    woken: Field,
    context: Field,
    flags: Field,
    /// None on kernels before 5.11.
    locks: Option<HoldFields>,
}

impl Fields {
    pub fn find(tracefs: &Tracefs) -> io::Result<Fields> {
        /// `args` is an array, which begins behind the number of the call.
        const ARGUMENTS: usize = 16;
        Ok(Fields {
            call: tracefs.field("raw_syscalls/sys_enter", "id")?,
            arguments: ARGUMENTS,
            returning: tracefs.field("raw_syscalls/sys_exit", "id")?,
            result: tracefs.field("raw_syscalls/sys_exit", "ret")?,
            address: tracefs.field("exceptions/page_fault_user", "address")?,
            code: tracefs.field("exceptions/page_fault_user", "error_code")?,
            woken: tracefs.field("sched/sched_waking", "pid")?,
            context: tracefs.field("sched/sched_waking", "common_flags")?,
            flags: tracefs.field("task/task_newtask", "clone_flags")?,
            locks: HoldTracepoints::find(tracefs)
                .ok()
                .map(|found| found.fields),
        })
    }
}

/// Decodes records.
#[derive(Debug)]
pub(super) struct RawDecoder {
    pub sources: HashMap<u64, Source>,
    pub fields: Fields,
    /// For all that is no sample and no mapping.
    pub others: Decoder,
}

impl RawDecoder {
    /// The event of a record; none if it is unknown.
    pub fn event(&self, record: Record<'_>) -> Option<Stamped<Raw>> {
        if record.kind == sys::PERF_RECORD_SAMPLE {
            return self.sample(Reader(record.body));
        }
        let (body, thread, time) = record.parts()?;
        let what = match record.kind {
            sys::PERF_RECORD_MMAP2 => Happened::Mapped(mapped(body)?),
            _ => Happened::Other(self.others.event(record)?.event),
        };
        let event = Raw { thread, what };
        Some(Stamped { time, event })
    }

    fn sample(&self, mut body: Reader<'_>) -> Option<Stamped<Raw>> {
        let source = *self.sources.get(&body.u64()?)?;
        let thread = body.thread()?;
        let time = body.u64()?;
        // The CPU, and padding.
        body.take(8)?;
        let what = match source {
            Source::Resolved => Happened::Resolved,
            Source::Sleep => Happened::Sleep(body.addresses()?),
            Source::SoftWaking => {
                let chain = body.addresses()?;
                Happened::Waking {
                    woken: self.fields.woken.read(body.raw()?)? as u32,
                    by: Waker::Soft(chain),
                }
            }
            _ => self.hit(source, body.raw()?)?,
        };
        let event = Raw { thread, what };
        Some(Stamped { time, event })
    }

    /// A tracepoint's hit.
    fn hit(&self, source: Source, raw: &[u8]) -> Option<Happened> {
        /// `TRACE_FLAG_HARDIRQ` and `TRACE_FLAG_NMI`.
        const INTERRUPT: i64 = 0x08 | 0x40;
        /// `TRACE_FLAG_SOFTIRQ`: these are reported with their stacks too.
        const SOFT: i64 = 0x10;
        let fields = &self.fields;
        Some(match source {
            Source::Enter => Happened::Enter {
                call: fields.call.read(raw)?,
                arguments: words(raw.get(fields.arguments..)?)?,
            },
            Source::Return => Happened::Return {
                call: fields.returning.read(raw)?,
                result: fields.result.read(raw)?,
            },
            Source::UserFault | Source::KernelFault => Happened::Fault {
                address: fields.address.read(raw)? as u64,
                code: fields.code.read(raw)? as u64,
                in_kernel: source == Source::KernelFault,
            },
            Source::Waking => Happened::Waking {
                woken: fields.woken.read(raw)? as u32,
                by: match fields.context.read(raw)? {
                    flags if flags & INTERRUPT != 0 => Waker::Interrupt,
                    flags if flags & SOFT != 0 => return None,
                    _ => Waker::Thread,
                },
            },
            Source::Birth => Happened::Birth {
                flags: fields.flags.read(raw)? as u64,
            },
            Source::Lock => {
                let fields = fields.locks?;
                if fields.success.read(raw)? == 0 {
                    return None;
                }
                Happened::Locked {
                    space: fields.acquired_space.read(raw)? as u64,
                }
            }
            Source::Unlock => Happened::Unlocked {
                space: fields.locks?.released_space.read(raw)? as u64,
            },
            Source::Resolved | Source::Sleep | Source::SoftWaking => return None,
        })
    }
}

fn words(bytes: &[u8]) -> Option<[u64; 6]> {
    let mut reader = Reader(bytes);
    let mut words = [0; 6];
    for word in &mut words {
        *word = reader.u64()?;
    }
    Some(words)
}

/// `PERF_RECORD_MMAP2`, behind its thread.
fn mapped(mut body: Reader<'_>) -> Option<Mapped> {
    body.thread()?;
    let (start, length, offset) = (body.u64()?, body.u64()?, body.u64()?);
    let device = u64::from(body.u32()?) << 32 | u64::from(body.u32()?);
    let inode = body.u64()?;
    // The inode's generation.
    body.take(8)?;
    Some(Mapped {
        start,
        length,
        offset,
        inode: (device, inode),
        prot: body.u32()?,
        flags: body.u32()?,
        path: body.text(),
    })
}
