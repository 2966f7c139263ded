//! Decoding the records of a ring.

use super::attributes::TRACED_DEPTH;
use super::format::Field;
use super::tracefs::{ContentionFields, HoldFields};
use super::{Chain, Event, Mapping, REGISTERS, Registers, Source, Stamped, Thread};
use perf_event_open_sys::bindings as sys;
use std::collections::HashMap;

/// Marks the record of a thread that goes off its CPU.
const OUT: u32 = sys::PERF_RECORD_MISC_SWITCH_OUT;
/// Marks that of a thread that wants to run on.
const PREEMPTED: u32 = sys::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
/// Bytes at the end of every record but samples: thread, time, CPU, event.
const TRAILER: usize = 32;

/// A record without its header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub kind: u32,
    pub misc: u16,
    pub body: &'a [u8],
}

impl<'a> Record<'a> {
    /// All but a sample: what comes before the trailer, and the trailer's thread and time.
    pub fn parts(self) -> Option<(Reader<'a>, Thread, u64)> {
        let at = self.body.len().checked_sub(TRAILER)?;
        let (body, trailer) = self.body.split_at(at);
        let mut trailer = Reader(trailer);
        Some((Reader(body), trailer.thread()?, trailer.u64()?))
    }
}

/// The records of `bytes`, which are whole ones one after the other.
pub(crate) fn records(mut bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        let header = bytes.get(..8)?;
        let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
        // A size smaller than the header would loop forever.
        let body = bytes.get(8..size)?;
        bytes = &bytes[size..];
        Some(Record {
            kind: Reader(header).u32()?,
            misc: u16::from_ne_bytes([header[4], header[5]]),
            body,
        })
    })
}

/// Decodes records.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoder {
    /// The sources, by event number.
    pub sources: HashMap<u64, Source>,
    /// The field of a switch that tells the state; none without that tracepoint.
    pub state: Option<Field>,
    /// The fields of the tracepoints of lock contention; none without them.
    pub contention: Option<ContentionFields>,
    /// The fields of the tracepoints of `mmap_lock`; none without them.
    pub hold_fields: Option<HoldFields>,
    /// The field of a wake-up that tells who is woken; none without that tracepoint.
    pub woken: Option<Field>,
    /// Addresses of a sampled stack at most.
    pub depth: usize,
}

impl Decoder {
    /// Passes on the events of `bytes`, which are whole records one after the other. Unknown
    /// records are skipped.
    pub fn decode(&self, bytes: &[u8], each: impl FnMut(Stamped)) {
        records(bytes)
            .filter_map(|record| self.event(record))
            .for_each(each);
    }

    /// The event of a record; none if it is unknown.
    pub fn event(&self, Record { kind, misc, body }: Record) -> Option<Stamped> {
        if kind == sys::PERF_RECORD_SAMPLE {
            return self.sample(Reader(body));
        }
        let (mut body, running, time) = Record { kind, misc, body }.parts()?;
        let event = match kind {
            sys::PERF_RECORD_LOST => {
                let id = body.u64()?;
                let count = body.u64()?;
                match self.sources.get(&id) {
                    Some(Source::Acquire | Source::Release | Source::Wake) => Event::LostHolds,
                    _ => Event::Lost(count),
                }
            }
            sys::PERF_RECORD_THROTTLE => Event::Throttled,
            sys::PERF_RECORD_FORK => {
                let (child, parent) = body.child_and_parent()?;
                Event::Fork { child, parent }
            }
            sys::PERF_RECORD_EXIT => Event::Exit {
                thread: body.child_and_parent()?.0,
            },
            sys::PERF_RECORD_COMM => Event::Comm {
                thread: body.thread()?,
                name: body.text(),
                exec: u32::from(misc) & sys::PERF_RECORD_MISC_COMM_EXEC != 0,
            },
            sys::PERF_RECORD_MMAP2 => body.mapping()?,
            sys::PERF_RECORD_SWITCH_CPU_WIDE => {
                let (thread, misc) = (running, u32::from(misc));
                match misc & OUT {
                    0 => Event::Resume { thread },
                    _ => Event::Off {
                        thread,
                        preempted: misc & PREEMPTED != 0,
                    },
                }
            }
            _ => return None,
        };
        Some(Stamped { time, event })
    }

    /// Returns true if a stack has as many addresses as there may be, besides the kernel's marks.
    fn cuts(&self, source: Source, addresses: &[u64]) -> bool {
        let most = match source {
            Source::Clock => self.depth,
            _ => TRACED_DEPTH.into(),
        };
        let is_address = |address: &&u64| **address < sys::PERF_CONTEXT_MAX;
        addresses.iter().filter(is_address).count() >= most
    }

    fn sample(&self, mut body: Reader) -> Option<Stamped> {
        let source = *self.sources.get(&body.u64()?)?;
        let thread = body.thread()?;
        let (time, cpu) = (body.u64()?, body.u32()?);
        // Reserved.
        body.take(4)?;
        let mut chain = Chain::default();
        let has_user = !matches!(source, Source::End | Source::Acquire | Source::Release);
        if has_user || source == Source::Acquire {
            chain.addresses = body.addresses()?;
            chain.cut = has_user && self.cuts(source, &chain.addresses);
        }
        let raw = match source {
            Source::Clock => &[],
            _ => body.raw()?,
        };
        if has_user {
            chain.registers = body.registers()?;
            chain.top = body.top()?;
        }
        let event = match source {
            Source::Clock => Event::Sample { thread, cpu, chain },
            Source::Acquire => self.hold_fields?.acquired(thread, chain, raw)?,
            Source::Release => self.hold_fields?.released(thread, raw)?,
            Source::Begin => self.contention?.begun(thread, chain, raw)?,
            Source::End => self.contention?.ended(thread, raw)?,
            Source::Wake => Event::Wake {
                thread,
                woken: self.woken?.read(raw)? as u32,
                chain,
            },
            Source::Switch => Event::Leave {
                thread,
                state: self.state?.read(raw)?,
                chain,
            },
        };
        Some(Stamped { time, event })
    }
}

impl ContentionFields {
    fn begun(self, thread: Thread, chain: Chain, raw: &[u8]) -> Option<Event> {
        Some(Event::Begin {
            thread,
            lock: self.begin_lock.read(raw)? as u64,
            flags: self.begin_flags.read(raw)? as u32,
            chain,
        })
    }

    fn ended(self, thread: Thread, raw: &[u8]) -> Option<Event> {
        Some(Event::End {
            thread,
            lock: self.end_lock.read(raw)? as u64,
        })
    }
}

impl HoldFields {
    /// None if the lock was not acquired after all.
    fn acquired(self, thread: Thread, chain: Chain, raw: &[u8]) -> Option<Event> {
        let is_acquired = self.success.read(raw)? != 0;
        is_acquired.then_some(Event::Acquire {
            thread,
            space: self.acquired_space.read(raw)? as u64,
            write: self.write.read(raw)? != 0,
            chain,
        })
    }

    fn released(self, thread: Thread, raw: &[u8]) -> Option<Event> {
        Some(Event::Release {
            thread,
            space: self.released_space.read(raw)? as u64,
        })
    }
}

/// Takes values off the front.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_ne_bytes(self.take(4)?.try_into().ok()?))
    }

    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    pub fn thread(&mut self) -> Option<Thread> {
        Some(Thread {
            pid: self.u32()?,
            tid: self.u32()?,
        })
    }

    /// In the order of birth and death records: pid, parent's pid, tid, parent's tid.
    fn child_and_parent(&mut self) -> Option<(Thread, Thread)> {
        let [pid, ppid, tid, ptid] = [self.u32()?, self.u32()?, self.u32()?, self.u32()?];
        Some((
            Thread { pid, tid },
            Thread {
                pid: ppid,
                tid: ptid,
            },
        ))
    }

    pub fn addresses(&mut self) -> Option<Box<[u64]>> {
        let count = usize::try_from(self.u64()?).ok()?;
        let bytes = self.take(count.checked_mul(8)?)?;
        let (words, _) = bytes.as_chunks();
        Some(words.iter().map(|&word| u64::from_ne_bytes(word)).collect())
    }

    pub fn raw(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(length as usize)
    }

    /// The user's registers; none for a kernel thread.
    fn registers(&mut self) -> Option<Option<Registers>> {
        if self.u64()? == 0 {
            return Some(None);
        }
        let (argument, frame) = (self.u64()?, self.u64()?);
        let link = match REGISTERS.len() {
            4 => Some(self.u64()?),
            _ => None,
        };
        Some(Some(Registers {
            argument,
            frame,
            link,
            stack: self.u64()?,
        }))
    }

    /// The words of the user's stack that were requested and readable; nothing for a kernel thread.
    fn top(&mut self) -> Option<Box<[u64]>> {
        let asked = usize::try_from(self.u64()?).ok()?;
        if asked == 0 {
            return Some(Box::default());
        }
        let bytes = self.take(asked)?;
        let read = usize::try_from(self.u64()?).ok()?;
        let (words, _) = bytes[..read.min(asked)].as_chunks();
        Some(words.iter().map(|&word| u64::from_ne_bytes(word)).collect())
    }

    /// The text up to the first zero byte.
    pub fn text(&mut self) -> String {
        let end = self
            .0
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }

    fn mapping(&mut self) -> Option<Event> {
        let thread = self.thread()?;
        let (start, length, offset) = (self.u64()?, self.u64()?, self.u64()?);
        // Skips device, inode and generation (or a build id), protection and flags.
        self.take(24)?;
        self.take(8)?;
        let end = start.saturating_add(length);
        let mapping = Mapping {
            start,
            end,
            offset,
            path: self.text(),
        };
        Some(Event::Map {
            pid: thread.pid,
            mapping,
        })
    }
}

#[cfg(test)]
mod tests;
