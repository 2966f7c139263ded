//! scalevm's own VM as a [`System`].

use machine::{PAGE_SIZE, Platform, VaRange};
use std::sync::Arc;
use vm::{Policies, Space, Vm};
use workloads::{Backing, Call, Error, Prot, System};

/// Pages of program and stack that every process has touched: without them a process
/// that only maps and unmaps would have nothing resident, and a removal nothing to do.
const IMAGE_PAGES: usize = 16;

/// A process: an address space with a program in it.
pub struct Process<M: Platform, P: Policies<M>> {
    space: Space<M, P>,
}

impl<M: Platform, P: Policies<M>> Process<M, P> {
    /// A process whose image has been touched, by this CPU.
    pub fn new(vm: &Arc<Vm<M, P>>) -> Result<Self, Error> {
        let failed = |error: vm::Error| Error::Failed(Call::Map, error.errno());
        let space = Space::new(vm).map_err(failed)?;
        space.activate();
        let image = space.map(IMAGE_PAGES * PAGE_SIZE, vm::Prot::READ_WRITE);
        let image = image.map_err(failed)?;
        for page in 0..IMAGE_PAGES {
            space.store(image + page * PAGE_SIZE, 1).map_err(failed)?;
        }
        Ok(Process { space })
    }
}

/// A task of a process, on the CPU that made this.
pub struct Task<M: Platform, P: Policies<M>> {
    process: Arc<Process<M, P>>,
}

impl<M: Platform, P: Policies<M>> Task<M, P> {
    /// Makes the calling thread's CPU run `process`.
    pub fn new(process: Arc<Process<M, P>>) -> Self {
        process.space.activate();
        Task { process }
    }

    fn space(&self) -> &Space<M, P> {
        &self.process.space
    }
}

fn rights(prot: Prot) -> vm::Prot {
    match prot {
        Prot::None => vm::Prot::NONE,
        Prot::Read => vm::Prot::READ,
        Prot::ReadWrite => vm::Prot::READ_WRITE,
    }
}

/// Says which call failed.
fn failed(call: Call) -> impl Fn(vm::Error) -> Error {
    move |error| Error::Failed(call, error.errno())
}

/// The word that holds the byte at `address`, and the byte's place in it.
fn word_of(address: usize) -> (usize, u32) {
    (address & !7, (address & 7) as u32 * 8)
}

impl<M: Platform, P: Policies<M>> System for Task<M, P> {
    /// There are none yet.
    type File = std::convert::Infallible;

    fn page_size(&self) -> usize {
        PAGE_SIZE
    }

    fn map(
        &mut self,
        len: usize,
        prot: Prot,
        backing: Backing<'_, Self::File>,
    ) -> Result<usize, Error> {
        match backing {
            Backing::Anonymous => self
                .space()
                .map(len, rights(prot))
                .map_err(failed(Call::Map)),
            Backing::PrivateFile(file) | Backing::SharedFile(file) => match *file {},
        }
    }

    fn unmap(&mut self, start: usize, len: usize) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        self.space().unmap(range).map_err(failed(Call::Unmap))
    }

    fn protect(&mut self, start: usize, len: usize, prot: Prot) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        let protected = self.space().protect(range, rights(prot));
        protected.map_err(failed(Call::Protect))
    }

    fn discard(&mut self, start: usize, len: usize) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        self.space().discard(range).map_err(failed(Call::Discard))
    }

    fn program_break(&mut self) -> Result<usize, Error> {
        // Tasks of one process move the break up and back beside each other, so the
        // place to start from is where the heap begins, not where it ends just now.
        Ok(vm::HEAP_START)
    }

    fn set_program_break(&mut self, to: usize) -> Result<(), Error> {
        self.space().set_break(to).map_err(failed(Call::Brk))
    }

    fn file(&mut self, _len: usize) -> Result<Self::File, Error> {
        Err(Error::Unsupported(Call::File))
    }

    fn write(&mut self, address: usize, value: u8) -> Result<(), Error> {
        let (word, shift) = word_of(address);
        let others = self.space().load(word).map_err(failed(Call::Touch))? & !(0xff << shift);
        let written = self.space().store(word, others | u64::from(value) << shift);
        written.map_err(failed(Call::Touch))
    }

    fn read(&mut self, address: usize) -> Result<u8, Error> {
        let (word, shift) = word_of(address);
        let value = self.space().load(word).map_err(failed(Call::Touch))?;
        Ok((value >> shift) as u8)
    }
}
