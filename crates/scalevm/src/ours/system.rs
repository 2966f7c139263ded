//! scalevm's own VM as a [`System`].

use super::process::{Process, failed};
use super::stores::Stores;
use machine::{PAGE_SIZE, VaRange};
use std::sync::Arc;
use vm::object::{Object, ObjectRef};
use vm::{Advice, Move, Policies, Request, Space};
use workloads::{Backing, Call, Child, Error, Forked, Prot, System};

/// A task of a process, on the CPU that made this.
pub struct Task<M: Stores, P: Policies<M>> {
    process: Arc<Process<M, P>>,
    /// Exit codes of children that have not been waited for.
    children: Vec<Option<u8>>,
}

impl<M: Stores, P: Policies<M>> Task<M, P> {
    /// Makes the calling thread's CPU run `process`.
    pub fn new(process: Arc<Process<M, P>>) -> Self {
        process.space.activate();
        let children = Vec::new();
        Task { process, children }
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

/// The word that holds the byte at `address`, and the byte's place in it.
fn word_of(address: usize) -> (usize, u32) {
    (address & !7, (address & 7) as u32 * 8)
}

impl<M: Stores, P: Policies<M>> System for Task<M, P> {
    type File = ObjectRef<M, P>;

    fn page_size(&self) -> usize {
        PAGE_SIZE
    }

    fn map(
        &mut self,
        len: usize,
        prot: Prot,
        backing: Backing<'_, Self::File>,
    ) -> Result<usize, Error> {
        let prot = rights(prot);
        let of = |file| Request::object(file, 0, len, prot);
        let request = match backing {
            Backing::Anonymous => Ok(Request::anonymous(len, prot)),
            Backing::PrivateFile(file) => of(file),
            Backing::SharedFile(file) => of(file).map(Request::shared),
        };
        let mapped = request.and_then(|request| self.space().map_as(&request));
        mapped.map_err(failed(Call::Map))
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

    fn file(&mut self, len: usize) -> Result<Self::File, Error> {
        let store = M::file().map_err(|error| Error::Failed(Call::File, error.errno))?;
        Object::file(self.space().vm(), store, len as u64).map_err(failed(Call::File))
    }

    fn remap(&mut self, start: usize, len: usize, new_len: usize) -> Result<usize, Error> {
        let old = VaRange::sized(start, len);
        let moved = self.space().remap(old, new_len, Move::IfNeeded);
        moved.map_err(failed(Call::Remap))
    }

    fn page_out(&mut self, start: usize, len: usize) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        let advised = self.space().advise(range, Advice::PageOut);
        advised.map_err(failed(Call::PageOut))
    }

    /// The child is over when this returns: it has run on the task's CPU.
    fn fork(&mut self, then: Forked) -> Result<Child, Error> {
        let code = self.process.fork(then)?;
        self.children.push(Some(code));
        Ok(Child::Process(self.children.len() as i32 - 1))
    }

    fn wait(&mut self, child: Child) -> Result<u8, Error> {
        let code = match child {
            Child::Process(number) => {
                let place = usize::try_from(number).ok();
                place.and_then(|place| self.children.get_mut(place)?.take())
            }
            Child::Thread(_) => None,
        };
        while self.children.last() == Some(&None) {
            self.children.pop();
        }
        code.ok_or(Error::Failed(Call::Wait, libc::ECHILD))
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
