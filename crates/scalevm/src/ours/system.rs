//! scalevm's own VM as a [`System`].

use super::common::Given;
use super::kernel::{Account, Kernel};
use super::process::{Process, failed};
use super::stores;
use machine::{Access, PAGE_SIZE, PageFault, VaRange};
use std::sync::Arc;
use vm::object::ObjectRef;
use vm::{Advice, Move, Policies, Request, Space};
use workloads::{Backing, Call, Child, Daemon, Error, Forked, Program, Prot, System};

/// A task of a process, on the CPU that made this.
pub struct Task<M: Kernel, P: Policies<M>> {
    process: Arc<Process<M, P>>,
    account: Account,
    given: Given<M, P>,
    /// Exit codes of children that have not been waited for.
    children: Vec<Option<u8>>,
}

impl<M: Kernel, P: Policies<M>> Task<M, P> {
    /// Makes the calling thread's CPU run `process`.
    pub fn new(process: Arc<Process<M, P>>, account: Account, given: Given<M, P>) -> Self {
        process.space.activate();
        account.begin::<M>();
        Task {
            process,
            account,
            given,
            children: Vec::new(),
        }
    }

    /// A task on the same CPU that has become `child`.
    fn become_child(&self, child: Process<M, P>) -> Self {
        Task {
            process: Arc::new(child),
            account: self.account.clone(),
            given: self.given.clone(),
            children: Vec::new(),
        }
    }

    /// Does what `program` says as the process `child`.
    fn live(
        &self,
        child: Process<M, P>,
        program: Program<'_, ObjectRef<M, P>>,
    ) -> Result<(), Error> {
        match program {
            Program::Compiler { unit, output } => {
                let inputs = self.given.inputs.as_ref();
                let inputs = inputs.ok_or(Error::Unsupported(Call::Exec))?;
                self.account.enter::<M>();
                let child = child.exec();
                self.account.leave::<M>();
                workloads::compile(&mut self.become_child(child?), unit, inputs, output)
            }
            Program::Mail(mail) => mail.run(&mut self.become_child(child)),
        }
    }

    fn space(&self) -> &Space<M, P> {
        &self.process.space
    }

    /// A system call.
    #[inline]
    fn call<R>(
        &self,
        call: Call,
        work: impl FnOnce(&Space<M, P>) -> Result<R, vm::Error>,
    ) -> Result<R, Error> {
        self.in_kernel(|| work(self.space()).map_err(failed(call)))
    }

    #[inline]
    fn in_kernel<R>(&self, work: impl FnOnce() -> R) -> R {
        self.account.enter::<M>();
        let result = work();
        self.account.leave::<M>();
        result
    }

    /// A touch of memory for reading or writing, which enters no kernel; if it faults, the machine charges
    /// for that.
    #[inline]
    fn touch<R>(
        &self,
        access: Access,
        touch: impl Fn(&M) -> Result<R, PageFault>,
    ) -> Result<R, Error> {
        let space = self.space();
        loop {
            let began = self.account.now::<M>();
            let fault = match touch(space.vm().machine()) {
                Ok(result) => return Ok(result),
                Err(fault) => PageFault { access, ..fault },
            };
            self.account.left_user(began);
            let served = space.fault(fault);
            self.account.leave::<M>();
            served.map_err(failed(Call::Touch))?;
        }
    }

    /// Keeps the exit code of a child for who waits.
    fn ended(&mut self, code: u8) -> Child {
        self.children.push(Some(code));
        Child::Process(self.children.len() as i32 - 1)
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

impl<M: Kernel, P: Policies<M>> System for Task<M, P> {
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
        self.call(Call::Map, |space| {
            let request = match backing {
                Backing::Anonymous => Ok(Request::anonymous(len, prot)),
                Backing::PrivateFile(file) => of(file),
                Backing::SharedFile(file) => of(file).map(Request::shared),
            };
            space.map_as(&request?)
        })
    }

    fn unmap(&mut self, start: usize, len: usize) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        self.call(Call::Unmap, |space| space.unmap(range))
    }

    fn protect(&mut self, start: usize, len: usize, prot: Prot) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        self.call(Call::Protect, |space| space.protect(range, rights(prot)))
    }

    fn discard(&mut self, start: usize, len: usize) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        self.call(Call::Discard, |space| space.discard(range))
    }

    fn program_break(&mut self) -> Result<usize, Error> {
        // Tasks of one process move the break up and back beside each other, so the
        // place to start from is where the heap begins, not where it ends just now.
        self.in_kernel(|| Ok(vm::HEAP_START))
    }

    fn set_program_break(&mut self, to: usize) -> Result<(), Error> {
        self.call(Call::Brk, |space| space.set_break(to))
    }

    fn file(&mut self, len: usize) -> Result<Self::File, Error> {
        self.in_kernel(|| stores::file(self.space().vm(), len))
    }

    fn remap(&mut self, start: usize, len: usize, new_len: usize) -> Result<usize, Error> {
        let old = VaRange::sized(start, len);
        self.call(Call::Remap, |space| {
            space.remap(old, new_len, Move::IfNeeded)
        })
    }

    fn page_out(&mut self, start: usize, len: usize) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        self.call(Call::PageOut, |space| space.advise(range, Advice::PageOut))
    }

    /// The child is over when this returns: it has run on the task's CPU.
    fn fork(&mut self, then: Forked) -> Result<Child, Error> {
        let code = self.in_kernel(|| self.process.fork(then))?;
        Ok(self.ended(code))
    }

    /// As [`System::fork`]; the child's time is the task's.
    fn start(&mut self, program: Program<'_, Self::File>) -> Result<Child, Error> {
        self.in_kernel(|| {
            self.process.with_child(|child| {
                self.account.leave::<M>();
                let lived = self.live(child, program);
                self.account.enter::<M>();
                lived
            })
        })?;
        Ok(self.ended(0))
    }

    fn daemon(&self) -> Option<Daemon> {
        self.given.daemon
    }

    fn write_file(&mut self, file: &Self::File, at: u64, bytes: &[u8]) -> Result<usize, Error> {
        self.in_kernel(|| file.write(at, bytes).map_err(failed(Call::Write)))
    }

    fn read_file(&mut self, file: &Self::File, at: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        self.in_kernel(|| file.read(at, bytes).map_err(failed(Call::Read)))
    }

    fn number(&self) -> usize {
        self.account.task
    }

    fn compute(&mut self, nanoseconds: u64) {
        M::compute(nanoseconds);
    }

    fn wait(&mut self, child: Child) -> Result<u8, Error> {
        self.account.enter::<M>();
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
        self.account.leave::<M>();
        code.ok_or(Error::Failed(Call::Wait, libc::ECHILD))
    }

    fn write(&mut self, address: usize, value: u8) -> Result<(), Error> {
        let (word, shift) = word_of(address);
        // The word is read for its other bytes; what the task does is a write from the first fault on.
        let others = self.touch(Access::Write, |machine| machine.load(word))? & !(0xff << shift);
        self.touch(Access::Write, |machine| {
            machine.store(word, others | u64::from(value) << shift)
        })
    }

    fn read(&mut self, address: usize) -> Result<u8, Error> {
        let (word, shift) = word_of(address);
        let value = self.touch(Access::Read, |machine| machine.load(word))?;
        Ok((value >> shift) as u8)
    }
}
