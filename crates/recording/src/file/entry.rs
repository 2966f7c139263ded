//! Entries: what a block is a row of.

use super::expected::Expected;
use super::wire::{Flaw, Input, Output, Wire};
use super::{definition, event};
use crate::{Birth, Environment, Event, File, Lost, Process, Thread};

/// An entry. A definition of a number that is defined already replaces the one before.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// The end, and its time in nanoseconds.
    End(u64),
    /// The bytes of a page, and the environment.
    Head(u32, Environment),
    Process(u32, Process),
    Thread(u32, Thread),
    File(u32, File),
    /// What was lost, and what recording costs: the last ones count.
    Toll(Lost, Option<f64>),
    Event(Event),
}

impl Entry {
    /// Writes it.
    pub fn write(mut self, output: &mut Output, expected: &mut Expected) -> Result<(), Flaw> {
        let mut head = match &self {
            Entry::End(_) => 0,
            Entry::Head(..) => 1,
            Entry::Process(..) => 2,
            Entry::Thread(..) => 3,
            Entry::File(..) => 4,
            Entry::Toll(..) => 5,
            Entry::Event(one) => event::kind(&one.what) | event::flags(one, expected),
        };
        output.byte(&mut head)?;
        self.fields(output, expected, head)
    }

    /// Reads one.
    pub fn read(input: &mut Input<'_>, expected: &mut Expected) -> Result<Self, Flaw> {
        let mut head = 0;
        input.byte(&mut head)?;
        let mut entry = Entry::blank(head).ok_or_else(|| format!("no entry begins with {head}"))?;
        entry.fields(input, expected, head)?;
        Ok(entry)
    }

    /// One with this first byte, to be filled.
    fn blank(head: u8) -> Option<Self> {
        let name = String::new;
        Some(match head {
            0 => Entry::End(0),
            1 => Entry::Head(0, Environment::default()),
            2 => Entry::Process(
                0,
                Process {
                    pid: 0,
                    name: name(),
                    birth: Birth::Existed,
                },
            ),
            3 => Entry::Thread(
                0,
                Thread {
                    tid: 0,
                    process: 0,
                    name: name(),
                },
            ),
            4 => Entry::File(
                0,
                File {
                    name: name(),
                    length: 0,
                },
            ),
            5 => Entry::Toll(Lost::default(), None),
            _ => Entry::Event(Event {
                at: 0,
                thread: 0,
                computed: 0,
                what: event::blank(head)?,
            }),
        })
    }

    fn fields(
        &mut self,
        wire: &mut impl Wire,
        expected: &mut Expected,
        head: u8,
    ) -> Result<(), Flaw> {
        match self {
            Entry::End(nanoseconds) => wire.number(nanoseconds),
            Entry::Head(page, environment) => {
                wire.small(page)?;
                definition::environment(wire, environment)
            }
            Entry::Process(number, process) => {
                wire.small(number)?;
                definition::process(wire, process)
            }
            Entry::Thread(number, thread) => {
                wire.small(number)?;
                definition::thread(wire, thread)
            }
            Entry::File(number, file) => {
                wire.small(number)?;
                definition::file(wire, file)
            }
            Entry::Toll(lost, cost) => definition::toll(wire, lost, cost),
            Entry::Event(event) => event::event(wire, expected, head, event),
        }
    }
}
