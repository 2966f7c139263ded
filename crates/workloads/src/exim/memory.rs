//! The accesses of the server's processes to their copies of its memory.

use super::{Daemon, fitted};
use crate::program::WRITTEN;
use crate::steps::expect_byte;
use crate::unit::Unit;
use crate::{Error, System};

/// The content of a page that only the daemon has written.
pub(super) const NEW: u8 = WRITTEN;

/// Memory of the process's own; it writes the first pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Area {
    /// The program's data.
    Data,
    Stack,
    Heap,
    /// Its other mappings.
    Anonymous,
    /// Data of the libraries, one page per library.
    Libraries,
}

/// The processes of a message: each is a copy of the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Connection,
    Delivery,
    Transport,
}

/// The most bytes that all three processes copy.
pub(super) const COPIED: usize = 384 << 10;

impl Role {
    /// Pages that it writes for a message.
    fn written(self) -> [(Area, usize); 5] {
        let [data, stack, heap, anonymous, libraries] = match self {
            Role::Connection => [9, 3, 18, 10, 8],
            Role::Delivery => [17, 5, 35, 22, 5],
            Role::Transport => [34, 3, 43, 20, 3],
        };
        [
            (Area::Data, data),
            (Area::Stack, stack),
            (Area::Heap, heap),
            (Area::Anonymous, anonymous),
            (Area::Libraries, libraries),
        ]
        .map(|(area, pages)| (area, fitted(pages)))
    }

    /// Pages of the program that it reads.
    pub const fn text(self) -> usize {
        fitted(match self {
            Role::Connection => 35,
            Role::Delivery => 67,
            Role::Transport => 80,
        })
    }

    /// The byte that it writes for `message`.
    fn byte(self, message: Unit) -> u8 {
        message.output(self as usize)
    }

    fn writes(self, area: Area, number: usize) -> bool {
        let mut written = self.written().into_iter();
        written.any(|(one, pages)| one == area && number < pages)
    }

    /// The content of a page when this process begins with `message`; `last` is the message before
    /// it on the same connection.
    fn found(self, area: Area, number: usize, message: Unit, last: Option<Unit>) -> u8 {
        let connection = Role::Connection;
        let writer = match self {
            Role::Connection => {
                let last = last.filter(|_| connection.writes(area, number));
                return last.map_or(NEW, |last| connection.byte(last));
            }
            Role::Delivery => [connection, connection],
            Role::Transport => [Role::Delivery, connection],
        };
        let writer = writer.into_iter().find(|one| one.writes(area, number));
        writer.map_or(NEW, |one| one.byte(message))
    }

    /// Writes its pages for `message`; they must be as the earlier processes have left them.
    pub fn work<S: System>(
        self,
        system: &mut S,
        daemon: &Daemon,
        message: Unit,
        last: Option<Unit>,
    ) -> Result<(), Error> {
        if last.is_none() {
            daemon.run_text(system, self.text())?;
        }
        for (area, pages) in self.written() {
            for number in 0..pages {
                let page = daemon.page(area, number, system.page_size());
                expect_byte(system, page, self.found(area, number, message, last))?;
                system.write(page, self.byte(message))?;
            }
        }
        Ok(())
    }
}
