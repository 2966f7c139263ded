//! A system that records its calls, and answers as a kernel would unless told otherwise.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use workloads::{Backing, Call, Child, Descriptor, Error, Forked, LAST, Prot, System};

const PAGE: usize = 4096;
const ENOMEM: i32 = 12;

/// Descriptors count from 1, in the order of their creation; children as well. 0 is the file's.
#[derive(Default)]
pub struct Script {
    /// The calls, in order.
    pub calls: Vec<String>,
    fail_at: Option<usize>,
    lie: Option<Call>,
    /// The content of each mapped page, by address.
    pages: BTreeMap<usize, u8>,
    /// Where the next mapping goes.
    top: usize,
    /// A page that may be neither read nor written.
    forbidden: Range<usize>,
    descriptors: i32,
    /// The readable bytes at each open descriptor.
    open: BTreeMap<i32, VecDeque<u8>>,
    /// The partner's source and destination.
    echo: Option<(i32, i32)>,
    children: i32,
    /// Children that were not waited for, and their exit codes.
    running: BTreeMap<i32, u8>,
    signals: u64,
    scans: usize,
    /// The number of the task, and of its process's threads; 0 is 1.
    place: (usize, usize),
}

impl Script {
    /// A script in which the call of this number fails.
    pub fn failing_at(number: usize) -> Self {
        Script {
            fail_at: Some(number),
            ..Script::default()
        }
    }

    /// A script in which calls of this kind give a wrong answer.
    pub fn lying(call: Call) -> Self {
        Script {
            lie: Some(call),
            ..Script::default()
        }
    }

    /// The script of the last thread of a process with as many `threads`.
    pub fn last_of(threads: usize) -> Self {
        Script {
            place: (threads - 1, threads),
            ..Script::default()
        }
    }

    /// Panics if a mapping, a descriptor or a child is left.
    pub fn assert_nothing_left(&self, name: &str) {
        // Closing or waiting may itself have failed.
        let failed = self.fail_at.and_then(|number| self.calls.get(number));
        let excused = |what: &str| failed.is_some_and(|call| call.starts_with(what));
        let left = self.pages.len();
        assert!(left == 0 || excused("unmap"), "{name} left {left} pages");
        let left = usize::from(excused("close"));
        assert!(self.open.len() <= left, "{name} left {:?}", self.open);
        let left = usize::from(excused("wait"));
        assert!(self.running.len() <= left, "{name} left children");
    }

    fn ask(&mut self, call: Call, text: String) -> Result<(), Error> {
        self.calls.push(text);
        if self.fail_at == Some(self.calls.len() - 1) {
            Err(Error::Failed(call, ENOMEM))
        } else {
            Ok(())
        }
    }

    fn lies(&self, call: Call) -> bool {
        self.lie == Some(call)
    }

    /// Maps `len` bytes at a new address.
    fn place(&mut self, len: usize) -> usize {
        let start = self.top + PAGE;
        self.top = start + len;
        let pages = (start..self.top).step_by(PAGE);
        self.pages.extend(pages.map(|page| (page, 0)));
        start
    }

    /// The pages of `len` bytes; all must be mapped.
    fn pages_of(&self, start: usize, len: usize) -> Vec<(usize, u8)> {
        let pages = self.pages.range(start..start + len);
        let pages: Vec<(usize, u8)> = pages.map(|(&page, &value)| (page, value)).collect();
        assert_eq!(
            pages.len(),
            len / PAGE,
            "{len} at {start:#x} are not mapped"
        );
        pages
    }

    /// The byte of a mapped page.
    fn byte(&mut self, address: usize) -> &mut u8 {
        assert!(
            !self.forbidden.contains(&address),
            "no rights at {address:#x}"
        );
        let byte = self.pages.get_mut(&address);
        byte.unwrap_or_else(|| panic!("access at {address:#x} without a mapping"))
    }

    fn descriptor_of_new(&mut self) -> Descriptor {
        self.descriptors += 1;
        self.open.insert(self.descriptors, VecDeque::new());
        Descriptor(self.descriptors)
    }

    fn child(&mut self, code: u8) -> i32 {
        self.children += 1;
        self.running.insert(self.children, code);
        self.children
    }
}

impl System for Script {
    type File = ();

    fn page_size(&self) -> usize {
        PAGE
    }

    fn map(&mut self, len: usize, _: Prot, _: Backing<'_, ()>) -> Result<usize, Error> {
        self.ask(Call::Map, format!("map {len}"))?;
        Ok(self.place(len))
    }

    fn unmap(&mut self, start: usize, len: usize) -> Result<(), Error> {
        self.ask(Call::Unmap, format!("unmap {len} at {start:#x}"))?;
        let mut mapped = self.pages.range(start..start + len);
        assert!(mapped.next().is_some(), "nothing of it is mapped");
        for page in (start..start + len).step_by(PAGE) {
            self.pages.remove(&page);
        }
        Ok(())
    }

    fn protect(&mut self, start: usize, len: usize, prot: Prot) -> Result<(), Error> {
        self.ask(
            Call::Protect,
            format!("protect {len} at {start:#x} {prot:?}"),
        )?;
        assert_eq!(prot, Prot::None, "nothing else is asked for");
        self.pages_of(start, len);
        self.forbidden = start..start + len;
        Ok(())
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

    fn file(&mut self, len: usize) -> Result<(), Error> {
        self.ask(Call::File, format!("file {len}"))
    }

    fn write(&mut self, address: usize, value: u8) -> Result<(), Error> {
        self.ask(Call::Touch, format!("write {value} at {address:#x}"))?;
        *self.byte(address) = value;
        Ok(())
    }

    fn read(&mut self, address: usize) -> Result<u8, Error> {
        self.ask(Call::Touch, format!("read at {address:#x}"))?;
        let lost = self.lies(Call::Touch);
        let value = *self.byte(address);
        Ok(if lost { 0 } else { value })
    }

    fn remap(&mut self, start: usize, len: usize, new_len: usize) -> Result<usize, Error> {
        self.ask(
            Call::Remap,
            format!("remap {len} at {start:#x} to {new_len}"),
        )?;
        if self.lies(Call::Remap) {
            return Ok(start);
        }
        let moved = self.place(new_len);
        for (page, value) in self.pages_of(start, len) {
            self.pages.remove(&page);
            self.pages.insert(page - start + moved, value);
        }
        Ok(moved)
    }

    fn page_out(&mut self, start: usize, len: usize) -> Result<(), Error> {
        self.ask(Call::PageOut, format!("page_out {len} at {start:#x}"))?;
        self.pages_of(start, len);
        if self.lies(Call::PageOut) {
            self.pages.insert(start, 0);
        }
        Ok(())
    }

    /// Three looks show all.
    fn scan(&mut self) -> Result<bool, Error> {
        self.ask(Call::Scan, "scan".into())?;
        self.scans += 1;
        Ok(!self.scans.is_multiple_of(4))
    }

    fn number(&self) -> usize {
        self.place.0
    }

    fn companions(&self) -> usize {
        self.place.1.max(1)
    }

    fn descriptor(&mut self, _: &()) -> Result<Descriptor, Error> {
        self.ask(Call::File, "descriptor".into())?;
        Ok(Descriptor(0))
    }

    fn open(&mut self) -> Result<Descriptor, Error> {
        self.ask(Call::Open, "open".into())?;
        Ok(self.descriptor_of_new())
    }

    fn close(&mut self, Descriptor(number): Descriptor) -> Result<(), Error> {
        self.ask(Call::Close, format!("close {number}"))?;
        let open = self.open.remove(&number);
        assert!(open.is_some(), "{number} is not open");
        Ok(())
    }

    fn lock_record(&mut self, Descriptor(number): Descriptor) -> Result<(), Error> {
        self.ask(Call::Lock, format!("lock {number}"))
    }

    fn unlock_record(&mut self, Descriptor(number): Descriptor) -> Result<(), Error> {
        self.ask(Call::Lock, format!("unlock {number}"))
    }

    fn poll_writable(&mut self, Descriptor(number): Descriptor) -> Result<bool, Error> {
        self.ask(Call::Poll, format!("poll {number}"))?;
        Ok(!self.lies(Call::Poll))
    }

    fn pipe(&mut self) -> Result<[Descriptor; 2], Error> {
        self.ask(Call::Pipe, "pipe".into())?;
        Ok([(); 2].map(|()| self.descriptor_of_new()))
    }

    fn socket_pair(&mut self) -> Result<[Descriptor; 2], Error> {
        self.ask(Call::SocketPair, "socket_pair".into())?;
        Ok([(); 2].map(|()| self.descriptor_of_new()))
    }

    fn write_to(&mut self, Descriptor(to): Descriptor, bytes: &[u8]) -> Result<usize, Error> {
        let [byte] = *bytes else {
            panic!("one byte at a time")
        };
        self.ask(Call::Write, format!("write {byte} to {to}"))?;
        assert!(self.open.contains_key(&to), "{to} is not open");
        if self.lies(Call::Write) {
            return Ok(0);
        }
        // Pairs are made together, the reader first; an echo moves on to the other pair.
        let reader = match self.echo {
            Some((from, _)) if to - 1 == from && byte == LAST => return Ok(1),
            Some((from, answers)) if to - 1 == from => answers - 1,
            _ => to - 1,
        };
        self.open.get_mut(&reader).expect("open").push_back(byte);
        Ok(1)
    }

    fn read_from(&mut self, from: Descriptor, bytes: &mut [u8]) -> Result<usize, Error> {
        let lie = if self.lies(Call::Read) { 128 } else { 0 };
        self.ask(Call::Read, format!("read {}", from.0))?;
        let waiting = self.open.get_mut(&from.0).expect("open");
        bytes[0] = waiting.pop_front().expect("no byte will come") + lie;
        Ok(1)
    }

    fn futex_wake(&mut self, address: usize, count: u32) -> Result<u32, Error> {
        self.ask(Call::FutexWake, format!("futex_wake {address:#x} {count}"))?;
        Ok(u32::from(self.lies(Call::FutexWake)))
    }

    fn handle_signals(&mut self) -> Result<(), Error> {
        self.ask(Call::Handle, "handle_signals".into())
    }

    fn raise(&mut self) -> Result<(), Error> {
        self.ask(Call::Raise, "raise".into())?;
        self.signals += u64::from(!self.lies(Call::Raise));
        Ok(())
    }

    fn signals(&mut self) -> Result<u64, Error> {
        self.ask(Call::Raise, "signals".into())?;
        Ok(self.signals)
    }

    fn fork(&mut self, then: Forked) -> Result<Child, Error> {
        self.ask(Call::Fork, format!("fork {then:?}"))?;
        let code = match then {
            Forked::Exits(code) => code,
            Forked::Execs => 0,
        };
        Ok(Child::Process(self.child(code)))
    }

    fn wait(&mut self, child: Child) -> Result<u8, Error> {
        let Child::Process(number) = child else {
            panic!("there are no threads")
        };
        self.ask(Call::Wait, format!("wait {number}"))?;
        let code = self.running.remove(&number).expect("a child");
        Ok(code + if self.lies(Call::Wait) { 2 } else { 0 })
    }

    fn start_echo(&mut self, from: Descriptor, to: Descriptor) -> Result<Child, Error> {
        self.ask(Call::Partner, format!("start_echo {} {}", from.0, to.0))?;
        for theirs in [from, to] {
            assert!(
                self.open.remove(&theirs.0).is_some(),
                "{theirs:?} is not open"
            );
        }
        self.echo = Some((from.0, to.0));
        Ok(Child::Process(self.child(0)))
    }
}
