//! The first process of the server; all others are copies of it.

use super::fitted;
use super::memory::{Area, NEW};
use crate::program::{Files, Image, Input, RELOCATED, Sizes};
use crate::steps::fill;
use crate::{Backing, Error, Prot, System};

/// Pages of the program that run in it, evenly spaced.
pub(super) const TEXT_PAGES: usize = fitted(96);
/// The program's sizes.
const SIZES: Sizes = Sizes {
    data: 512 << 10,
    data_pages: fitted(104),
    stack: 128 << 10,
    stack_pages: fitted(16),
};
/// Bytes of its heap, and pages of it that it has written.
const HEAP: usize = 512 << 10;
const HEAP_PAGES: usize = fitted(104);
/// Bytes of its other memory, and pages of it that it has written.
const ANONYMOUS: usize = 256 << 10;
const ANONYMOUS_PAGES: usize = fitted(56);

/// The bytes that it touches, those of files included.
pub(super) const MEMORY: usize = 640 << 10;

/// The addresses of the mail server's memory while it waits for connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Daemon {
    image: Image,
    heap: usize,
    anonymous: usize,
    /// The program break, before a process has moved it.
    pub(super) program_break: usize,
}

impl Daemon {
    /// Starts the daemon in this process: maps and touches the memory that it has when the first
    /// connection comes.
    ///
    /// # Errors
    /// The first call that fails. Earlier mappings then stay.
    pub fn start<S: System>(system: &mut S, files: &Files<S::File>) -> Result<Self, Error> {
        let image = Image::load(system, files, &SIZES)?;
        image.run_text(system, 0..TEXT_PAGES, TEXT_PAGES)?;
        for data in image.library_data {
            system.write(data + RELOCATED, NEW)?;
        }
        let heap = system.map(HEAP, Prot::ReadWrite, Backing::Anonymous)?;
        fill(system, heap, HEAP_PAGES, NEW)?;
        let anonymous = system.map(ANONYMOUS, Prot::ReadWrite, Backing::Anonymous)?;
        fill(system, anonymous, ANONYMOUS_PAGES, NEW)?;
        let program_break = system.program_break()?;
        Ok(Daemon {
            image,
            heap,
            anonymous,
            program_break,
        })
    }

    /// Unmaps its memory.
    ///
    /// # Errors
    /// The first call that fails.
    pub fn stop<S: System>(self, system: &mut S) -> Result<(), Error> {
        self.image.unload(system, &SIZES)?;
        system.unmap(self.heap, HEAP)?;
        system.unmap(self.anonymous, ANONYMOUS)
    }

    /// Reads the first pages of the program.
    pub(super) fn run_text<S: System>(&self, system: &mut S, pages: usize) -> Result<(), Error> {
        self.image.run_text(system, 0..pages, TEXT_PAGES)
    }

    /// The address of a page that processes write.
    pub(super) fn page(&self, area: Area, number: usize, page: usize) -> usize {
        let start = match area {
            Area::Data => self.image.data,
            Area::Stack => self.image.stack,
            Area::Heap => self.heap,
            Area::Anonymous => self.anonymous,
            // Each library has one such page.
            Area::Libraries => return self.image.library_data[number] + RELOCATED,
        };
        start + number * page
    }
}

const _: () = assert!(Input::Program.size() >= TEXT_PAGES * 4096);
