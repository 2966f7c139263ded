//! Reading.

use super::block::Blocks;
use super::entry::Entry;
use super::expected::Expected;
use super::known::Known;
use super::wire::Input;
use super::{MAGIC, VERSION, check_page};
use crate::{Error, Event, Recording};
use std::fmt;
use std::io::Read;

/// How a file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As its writer ended it.
    Whole,
    /// Its writer was interrupted, or the file was cut off. Its last event is at this time.
    CutOff { nanoseconds: u64 },
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            End::Whole => f.write_str("whole"),
            End::CutOff { nanoseconds } => {
                let seconds = *nanoseconds as f64 / 1e9;
                write!(f, "cut off after {seconds:.1} s: the end is missing")
            }
        }
    }
}

/// Reads the events of a recording one by one, and holds none.
///
/// Files are not trusted: what is damaged or contradicts itself is an error that names the block.
pub struct Reader<R> {
    blocks: Blocks<R>,
    /// What the current block stands for, and its next byte.
    block: Vec<u8>,
    at: usize,
    expected: Expected,
    known: Known,
    recording: Recording,
    end: Option<End>,
    failed: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the head of the file.
    pub fn new(mut from: R) -> Result<Self, Error> {
        let mut begin = Vec::new();
        let length = MAGIC.len() + size_of_val(&VERSION);
        from.by_ref().take(length as u64).read_to_end(&mut begin)?;
        let Some(version) = begin.strip_prefix(&MAGIC) else {
            return Err(Error::Foreign("not a recording of scalevm's".into()));
        };
        match <[u8; 2]>::try_from(version).map(u16::from_le_bytes) {
            Ok(VERSION) => {}
            Ok(other) => {
                let why = format!("version {other} of the format; version {VERSION} can be read");
                return Err(Error::Foreign(why));
            }
            Err(_) => return Err(Error::Foreign("it ends in its head".into())),
        }
        let mut reader = Reader {
            blocks: Blocks::new(from, length as u64),
            block: Vec::new(),
            at: 0,
            expected: Expected::new(1),
            known: Known::default(),
            recording: Recording::default(),
            end: None,
            failed: false,
        };
        reader.head()?;
        Ok(reader)
    }

    /// What is known so far, without events.
    pub fn known(&self) -> &Recording {
        &self.recording
    }

    /// What is known at the end, and how the file ends: cut off if not all events were read.
    pub fn finish(self) -> (Recording, End) {
        let nanoseconds = self.recording.nanoseconds;
        (
            self.recording,
            self.end.unwrap_or(End::CutOff { nanoseconds }),
        )
    }

    /// Reads the first block.
    fn head(&mut self) -> Result<(), Error> {
        if !self.next_block()? {
            return Err(Error::Foreign("it ends in its head".into()));
        }
        let Entry::Head(page, environment) = self.entry()? else {
            return Err(self.blocks.damaged("it is not the head"));
        };
        check_page(page).map_err(|why| self.blocks.damaged(why))?;
        self.recording.page = page;
        self.recording.environment = environment;
        match self.at == self.block.len() {
            true => Ok(()),
            false => Err(self.blocks.damaged("the head is longer")),
        }
    }

    /// Goes on to the next block; false if no whole one follows.
    fn next_block(&mut self) -> Result<bool, Error> {
        let block = self.blocks.next()?;
        let is_there = block.is_some();
        self.block = block.unwrap_or_default();
        self.at = 0;
        self.expected = Expected::new(self.recording.page.max(1));
        Ok(is_there)
    }

    /// Reads an entry of the block.
    fn entry(&mut self) -> Result<Entry, Error> {
        let mut input = Input {
            bytes: &self.block,
            at: self.at,
        };
        let entry = Entry::read(&mut input, &mut self.expected);
        let at = std::mem::replace(&mut self.at, input.at);
        entry
            .and_then(|entry| self.known.admit(&entry).map(|()| entry))
            .map_err(|why| self.blocks.damaged(format!("its entry at {at}: {why}")))
    }

    fn next_event(&mut self) -> Result<Option<Event>, Error> {
        while self.end.is_none() {
            if self.at == self.block.len() && !self.next_block()? {
                let nanoseconds = self.recording.nanoseconds;
                self.end = Some(End::CutOff { nanoseconds });
                break;
            }
            match self.entry()? {
                Entry::Event(event) => {
                    self.recording.nanoseconds = event.at;
                    return Ok(Some(event));
                }
                other => self.define(other)?,
            }
        }
        Ok(None)
    }

    fn define(&mut self, entry: Entry) -> Result<(), Error> {
        let recording = &mut self.recording;
        match entry {
            Entry::Process(number, process) => set(&mut recording.processes, number, process),
            Entry::Thread(number, thread) => set(&mut recording.threads, number, thread),
            Entry::File(number, file) => set(&mut recording.files, number, file),
            Entry::Toll(lost, cost) => (recording.lost, recording.cost) = (lost, cost),
            Entry::End(nanoseconds) => {
                recording.nanoseconds = nanoseconds;
                if self.at < self.block.len() || !self.blocks.is_over()? {
                    return Err(self.blocks.damaged("more follows after the end"));
                }
                self.end = Some(End::Whole);
            }
            Entry::Head(..) => return Err(self.blocks.damaged("a second head")),
            // It is no definition.
            Entry::Event(_) => {}
        }
        Ok(())
    }
}

/// Sets the element with this number, which exists or is the next.
fn set<T>(list: &mut Vec<T>, number: u32, value: T) {
    match list.get_mut(number as usize) {
        Some(old) => *old = value,
        None => list.push(value),
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let next = self.next_event().transpose();
        self.failed = matches!(next, Some(Err(_)));
        next
    }
}
