//! The format of files, `NAME.vmrec`; docs/recording.md specifies it.
//!
//! A file is a row of blocks, each compressed and with a checksum. A block is a row of entries:
//! definitions and events. What an entry leaves out is [expected](expected) from the entries before
//! it in its block, so that each block is understood on its own.

mod block;
mod definition;
mod entry;
mod event;
mod expected;
mod known;
mod reader;
mod wire;
mod writer;

pub use reader::{End, Reader};
pub use writer::Writer;

use crate::{Error, Event, Recording};
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

/// The first bytes of a file. Transfers that change line ends damage them.
const MAGIC: [u8; 8] = *b"\x8bvmrec\r\n";

/// The version of the format, which follows.
const VERSION: u16 = 1;

impl Recording {
    /// Reads the recording in the file at `path`.
    pub fn open(path: &Path) -> Result<(Recording, End), Error> {
        Recording::read(File::open(path)?)
    }

    /// Reads all of a recording, up to its last whole block if it is cut off.
    pub fn read(from: impl Read) -> Result<(Recording, End), Error> {
        let mut reader = Reader::new(from)?;
        let events: Vec<Event> = reader.by_ref().collect::<Result<_, _>>()?;
        let (recording, end) = reader.finish();
        Ok((
            Recording {
                events,
                ..recording
            },
            end,
        ))
    }

    /// Writes all of it.
    pub fn write(&self, to: impl Write) -> Result<(), Error> {
        let mut writer = Writer::new(to, &self.environment, self.page)?;
        for (number, process) in (0..).zip(&self.processes) {
            writer.process(number, process)?;
        }
        for (number, thread) in (0..).zip(&self.threads) {
            writer.thread(number, thread)?;
        }
        for (number, file) in (0..).zip(&self.files) {
            writer.file(number, file)?;
        }
        writer.lost(self.lost)?;
        if let Some(cost) = self.cost {
            writer.cost(cost)?;
        }
        for event in &self.events {
            writer.event(event)?;
        }
        writer.finish(self.nanoseconds)
    }
}

/// An error if no page has this size.
fn check_page(page: u32) -> Result<(), wire::Flaw> {
    match page.is_power_of_two() && (512..=1 << 30).contains(&page) {
        true => Ok(()),
        false => Err(format!("a page has {page} bytes")),
    }
}
