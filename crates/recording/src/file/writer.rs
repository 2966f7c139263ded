//! Writing.

use super::block::{LARGEST, seal};
use super::entry::Entry;
use super::expected::Expected;
use super::known::Known;
use super::wire::Output;
use super::{MAGIC, VERSION, check_page};
use crate::{Environment, Error, Event, File, Lost, Process, Thread};
use std::io::Write;

/// A block is written when its entries have this many bytes.
const FULL: usize = 64 << 10;

/// A block's events are at most this many nanoseconds apart.
const LONGEST: u64 = 1_000_000_000;

/// Writes a recording as it comes, in memory that does not grow with it.
///
/// Each block goes to the file as a whole, so a file is readable up to its last whole block when
/// the program that writes it ends at any point. What is refused ([`Error::Invalid`]) is left out;
/// the writer goes on.
pub struct Writer<W> {
    to: W,
    block: Output,
    expected: Expected,
    page: u32,
    /// The time of the block's first event.
    since: Option<u64>,
    known: Known,
    lost: Lost,
    cost: Option<f64>,
}

impl<W: Write> Writer<W> {
    /// Begins a recording made in `environment`, on pages of this many bytes.
    pub fn new(to: W, environment: &Environment, page: u32) -> Result<Self, Error> {
        check_page(page).map_err(Error::Invalid)?;
        let mut writer = Writer {
            to,
            block: Output::default(),
            expected: Expected::new(page),
            page,
            since: None,
            known: Known::default(),
            lost: Lost::default(),
            cost: None,
        };
        writer.to.write_all(&MAGIC)?;
        writer.to.write_all(&VERSION.to_le_bytes())?;
        writer.entry(Entry::Head(page, environment.clone()))?;
        writer.flush()?;
        Ok(writer)
    }

    /// Defines a process, or changes what is known of it. A new one has the next number.
    pub fn process(&mut self, number: u32, process: &Process) -> Result<(), Error> {
        self.entry(Entry::Process(number, process.clone()))
    }

    /// Defines a thread, or changes what is known of it. A new one has the next number.
    pub fn thread(&mut self, number: u32, thread: &Thread) -> Result<(), Error> {
        self.entry(Entry::Thread(number, thread.clone()))
    }

    /// Defines a file, or changes what is known of it. A new one has the next number.
    pub fn file(&mut self, number: u32, file: &File) -> Result<(), Error> {
        self.entry(Entry::File(number, file.clone()))
    }

    /// What was lost so far, all in all.
    pub fn lost(&mut self, lost: Lost) -> Result<(), Error> {
        self.lost = lost;
        self.entry(Entry::Toll(lost, self.cost))
    }

    /// The share of a loop of calls that recording it takes.
    pub fn cost(&mut self, cost: f64) -> Result<(), Error> {
        self.cost = Some(cost).filter(|cost| cost.is_finite());
        self.entry(Entry::Toll(self.lost, self.cost))
    }

    /// Writes an event. Events come in the order of time, and after what they refer to: a thread
    /// after its definition, a place after the call that made its mapping.
    pub fn event(&mut self, event: &Event) -> Result<(), Error> {
        if event.at.saturating_sub(*self.since.get_or_insert(event.at)) >= LONGEST {
            self.flush()?;
            self.since = Some(event.at);
        }
        self.entry(Entry::Event(event.clone()))
    }

    /// Ends the recording, which took this long. Without it, a reader calls the file cut off.
    pub fn finish(mut self, nanoseconds: u64) -> Result<(), Error> {
        self.entry(Entry::End(nanoseconds.max(self.known.at)))?;
        self.flush()
    }

    /// Writes what came so far, as a block.
    pub fn flush(&mut self) -> Result<(), Error> {
        if self.block.0.is_empty() {
            return Ok(());
        }
        let mut sealed = Vec::new();
        seal(&self.block.0, &mut sealed)?;
        self.block.0.clear();
        self.expected = Expected::new(self.page);
        self.since = None;
        self.to.write_all(&sealed)?;
        self.to.flush()?;
        Ok(())
    }

    fn entry(&mut self, entry: Entry) -> Result<(), Error> {
        self.known.admit(&entry).map_err(Error::Invalid)?;
        let begins = self.block.0.len();
        let written = entry.write(&mut self.block, &mut self.expected);
        let is_small = self.block.0.len() <= LARGEST;
        if written.is_err() || !is_small {
            // What is expected has changed: a new block begins.
            self.block.0.truncate(begins);
            self.flush()?;
        }
        written.map_err(Error::Invalid)?;
        if !is_small {
            let why = format!("one entry has more than {LARGEST} bytes");
            return Err(Error::Invalid(why));
        }
        if self.block.0.len() >= FULL {
            self.flush()?;
        }
        Ok(())
    }
}
