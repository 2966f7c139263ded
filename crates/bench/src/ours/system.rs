//! scalevm's own VM as a [`workloads::System`].

use super::common::Given;
use super::descriptors::{Descriptors, Open};
use super::family::Over;
use super::kernel::{Account, SystemCalls};
use super::parts::Steps;
use super::process::{Process, failed, leave};
use super::stores;
use baselines::selected::AnyKernel;
use ipc::futex::Name;
use ipc::{Entry, Kernel as _, Pipe};
use machine::{Access, Atomics, Clock, Mmu, PAGE_SIZE, PageFault, Tasks, VaRange};
use std::sync::Arc;
use vm::object::{Object, ObjectRef};
use vm::proc::TOGETHER;
use vm::{Advice, At, Bring, Move, Request, Space, System};
use workloads::replay::{Part, Start, Treatment};
use workloads::{Backing, Call, Child, Daemon, Descriptor, Error, Forked, Program, Prot};

/// A task of a process, on the CPU that made this.
pub struct Task<S: System<Machine: SystemCalls>> {
    process: Arc<Process<S>>,
    account: Account,
    given: Given<S>,
    descriptors: Descriptors<S::Machine>,
    /// The place of the tasks' common memory, once mapped.
    common: Option<VaRange>,
    /// Where the next scan begins.
    scanned: usize,
    /// The ends of children that have not been waited for.
    children: Vec<Option<End<S>>>,
}

/// The end of a child.
enum End<S: System> {
    /// It has ended with this code.
    Code(u8),
    /// It may still run.
    Awaited(Arc<Over<S::Machine, ()>>),
}

impl<S: System<Machine: SystemCalls>> Task<S> {
    /// Makes the calling thread's CPU run `process`.
    pub fn new(process: Arc<Process<S>>, account: Account, given: Given<S>) -> Self {
        process.enter();
        account.begin::<S::Machine>();
        Task {
            process,
            account,
            given,
            descriptors: Descriptors::new(),
            common: None,
            scanned: 0,
            children: Vec::new(),
        }
    }

    /// A task on the same CPU that has become `child`.
    fn become_child(&self, child: Process<S>) -> Self {
        Task {
            process: Arc::new(child),
            account: self.account.clone(),
            given: self.given.clone(),
            descriptors: Descriptors::new(),
            common: None,
            scanned: 0,
            children: Vec::new(),
        }
    }

    /// Executes `program` as the process `child`; returns the outcome.
    fn execute(
        &self,
        child: Process<S>,
        program: Program<'_, ObjectRef<S>>,
    ) -> Result<Self, Error> {
        match program {
            Program::Compiler { unit, output } => {
                let inputs = self.given.inputs.as_ref();
                let inputs = inputs.ok_or(Error::Unsupported(Call::Exec))?;
                let child = self.in_kernel(Entry::Exec, || child.exec())?;
                let mut child = self.become_child(child);
                workloads::compile(&mut child, unit, inputs, output)?;
                Ok(child)
            }
            Program::Mail(mail) => {
                let mut child = self.become_child(child);
                mail.run(&mut child)?;
                Ok(child)
            }
        }
    }

    /// The kernel.
    #[inline]
    fn kernel(&self) -> &AnyKernel<S::Machine> {
        &self.given.services.kernel
    }

    fn space(&self) -> &Space<S> {
        &self.process.space
    }

    /// A system call.
    #[inline]
    #[track_caller]
    fn call<R>(
        &self,
        why: Entry,
        call: Call,
        work: impl FnOnce(&Space<S>) -> Result<R, vm::Error>,
    ) -> Result<R, Error> {
        self.in_kernel(why, || work(self.space()).map_err(failed(call)))
    }

    #[inline]
    #[track_caller]
    fn in_kernel<R>(&self, why: Entry, work: impl FnOnce() -> R) -> R {
        self.account.in_kernel(self.kernel(), why, work)
    }

    /// A touch of memory for reading or writing, which enters no kernel; if it faults, the machine
    /// charges for that.
    #[inline]
    #[track_caller]
    fn touch<R>(
        &self,
        access: Access,
        touch: impl Fn(&S::Machine) -> Result<R, PageFault>,
    ) -> Result<R, Error> {
        let space = self.space();
        loop {
            S::Machine::safe_point();
            let began = self.account.now::<S::Machine>();
            let fault = match touch(space.vm().machine()) {
                Ok(result) => return Ok(result),
                Err(fault) => PageFault { access, ..fault },
            };
            self.account.left_user::<S::Machine>(began);
            let kernel = self.kernel();
            kernel.enter(Entry::Fault);
            let served = space.fault(fault);
            kernel.leave(Entry::Fault);
            self.account.leave::<S::Machine>();
            served.map_err(failed(Call::Touch))?;
        }
    }

    #[inline]
    #[track_caller]
    fn map_at(
        &self,
        at: At,
        len: usize,
        prot: Prot,
        backing: Backing<'_, ObjectRef<S>>,
    ) -> Result<usize, Error> {
        let prot = rights(prot);
        let why = match backing {
            Backing::Anonymous | Backing::SharedAnonymous => Entry::MapAnonymous,
            Backing::PrivateFile(_) | Backing::SharedFile(_) => Entry::MapFile,
        };
        self.call(why, Call::Map, |space| {
            let shared = match backing {
                Backing::SharedAnonymous => Some(Object::anonymous(space.vm(), len as u64)?),
                _ => None,
            };
            let request = match (backing, &shared) {
                (Backing::PrivateFile(file), _) => Request::object(file, 0, len, prot)?,
                (Backing::SharedFile(file), _) | (_, Some(file)) => {
                    Request::object(file, 0, len, prot)?.shared()
                }
                (_, None) => Request::anonymous(len, prot),
            };
            space.map_as(&request.at(at))
        })
    }

    /// The steps of recorded programs.
    fn steps(&self) -> Result<&Steps, Error> {
        let steps = self.given.services.steps.as_ref();
        steps.ok_or(Error::Unsupported(Call::Replay))
    }

    /// A process that has no memory yet.
    fn new_process(&self) -> Result<Process<S>, Error> {
        let made = Process::new(self.space().vm());
        self.process.enter();
        made
    }

    /// Lets a child live until it ends; returns its result. It is a task of its own if the machine
    /// has a scheduler, for which the caller waits; otherwise it lives on the caller's CPU.
    fn live<L, R>(
        &self,
        child: Process<S>,
        life: impl FnOnce(Process<S>) -> Result<(L, R), Error>,
    ) -> Result<R, Error> {
        let end = |lived: Result<(L, R), Error>| {
            leave::<S::Machine>();
            lived.map(|(_, left)| left)
        };
        if !S::Machine::has_tasks() {
            let lived = life(child);
            let left = self.in_kernel(Entry::Exit, || end(lived));
            self.process.enter();
            return left;
        }
        self.process.enter();
        let (account, given) = (self.account.clone(), self.given.clone());
        let over = Over::<S::Machine, R>::new();
        let place = &over;
        let task = move || {
            child.enter();
            account.begin::<S::Machine>();
            let lived = life(child);
            let kernel = &given.services.kernel;
            account.to_the_end(kernel, Entry::Exit, || place.tell(kernel, end(lived)));
        };
        // SAFETY: the caller waits until the child has told its end, and behind that the child uses
        // only its own objects. Until the caller sleeps, both only read the objects that the child
        // borrows.
        unsafe { S::Machine::spawn(task) };
        let left = self.in_kernel(Entry::Wait, || {
            S::Machine::stand_by(|| over.wait(self.kernel()))
        });
        self.account.begin::<S::Machine>();
        left
    }

    /// The futexes' name of the word at `address`.
    fn name(&self, address: usize) -> Name {
        /// No space is there.
        const COMMON: u64 = 0;
        match self.common.filter(|common| common.contains(address)) {
            Some(common) => Name {
                of: COMMON,
                at: (address - common.start) as u64,
            },
            None => Name {
                of: S::Machine::key(Arc::as_ptr(&self.process).addr()) as u64,
                at: address as u64,
            },
        }
    }

    /// Keeps the exit code of a child for the waiting parent.
    fn ended(&mut self, code: u8) -> Child {
        self.add_child(End::Code(code))
    }

    fn add_child(&mut self, end: End<S>) -> Child {
        self.children.push(Some(end));
        Child::Process(self.children.len() as i32 - 1)
    }
}

impl<S: System<Machine: SystemCalls>> Drop for Task<S> {
    fn drop(&mut self) {
        if self.process.is_entered() {
            leave::<S::Machine>();
        }
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

impl<S: System<Machine: SystemCalls>> workloads::System for Task<S> {
    type File = ObjectRef<S>;

    fn page_size(&self) -> usize {
        PAGE_SIZE
    }

    fn map(
        &mut self,
        len: usize,
        prot: Prot,
        backing: Backing<'_, Self::File>,
    ) -> Result<usize, Error> {
        self.map_at(At::Anywhere, len, prot, backing)
    }

    fn map_over(
        &mut self,
        start: usize,
        len: usize,
        prot: Prot,
        backing: Backing<'_, Self::File>,
    ) -> Result<(), Error> {
        self.map_at(At::Fixed(start), len, prot, backing).map(drop)
    }

    fn unmap(&mut self, start: usize, len: usize) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        self.call(Entry::Unmap, Call::Unmap, |space| space.unmap(range))
    }

    fn protect(&mut self, start: usize, len: usize, prot: Prot) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        self.call(Entry::Protect, Call::Protect, |space| {
            space.protect(range, rights(prot))
        })
    }

    fn discard(&mut self, start: usize, len: usize) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        self.call(Entry::Memory, Call::Discard, |space| space.discard(range))
    }

    fn program_break(&mut self) -> Result<usize, Error> {
        // Tasks of one process move the break up and back concurrently, so the place to start from
        // is where the heap begins, not where it ends just now.
        self.in_kernel(Entry::Break, || Ok(vm::HEAP_START))
    }

    fn set_program_break(&mut self, to: usize) -> Result<(), Error> {
        self.call(Entry::Break, Call::Brk, |space| space.set_break(to))
    }

    fn file(&mut self, len: usize) -> Result<Self::File, Error> {
        self.in_kernel(Entry::Descriptor, || stores::file(self.space().vm(), len))
    }

    fn remap(&mut self, start: usize, len: usize, new_len: usize) -> Result<usize, Error> {
        let old = VaRange::sized(start, len);
        self.call(Entry::Memory, Call::Remap, |space| {
            space.remap(old, new_len, Move::IfNeeded)
        })
    }

    fn treat(&mut self, start: usize, len: usize, how: Treatment) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        self.call(Entry::Memory, Call::Treat, |space| match how {
            Treatment::Discard => space.discard(range),
            Treatment::Free => space.advise(range, Advice::Free),
            Treatment::PageOut => space.advise(range, Advice::PageOut),
            Treatment::Cold => space.advise(range, Advice::Cold),
            Treatment::Remove => space.advise(range, Advice::Remove),
            Treatment::Normal => space.advise(range, Advice::Normal),
            Treatment::Random => space.advise(range, Advice::Random),
            Treatment::Sequential => space.advise(range, Advice::Sequential),
            Treatment::DontDump => space.advise(range, Advice::DontDump),
            Treatment::DoDump => space.advise(range, Advice::DoDump),
            Treatment::PopulateRead => space.advise(range, Advice::PopulateRead),
            Treatment::PopulateWrite => space.advise(range, Advice::PopulateWrite),
            Treatment::Lock => space.lock(range, Bring::Now),
            Treatment::Unlock => space.unlock(range),
            Treatment::Sync => space.sync(range),
            Treatment::InCore => space.incore(range).map(drop),
        })
    }

    fn begin(&mut self, part: Part<Self::File>, start: Start) -> Result<Child, Error> {
        if !S::Machine::has_tasks() {
            return Err(Error::Unsupported(Call::Replay));
        }
        let process = self.in_kernel(Entry::Fork, || match start {
            Start::Thread => Ok(self.process.clone()),
            Start::Copy => self.process.copy().map(Arc::new),
            Start::Fresh => self.new_process().map(Arc::new),
        })?;
        let given = self.given.clone();
        // Several parts at a time would write one ledger.
        let account = Account {
            ledgers: None,
            ..self.account.clone()
        };
        let over = Arc::new(Over::new());
        let told = over.clone();
        let life = move || {
            let services = given.services.clone();
            let mut system = Task::new(process, account.clone(), given);
            let taken = part.run(&mut system);
            account.to_the_end(&services.kernel, Entry::Exit, || {
                drop(system);
                told.tell(&services.kernel, taken);
            });
        };
        // SAFETY: it borrows nothing.
        unsafe { S::Machine::spawn(life) };
        Ok(self.add_child(End::Awaited(over)))
    }

    fn clear_steps(&mut self) -> Result<(), Error> {
        self.steps()?.clear(self.account.task);
        Ok(())
    }

    fn announce_steps(&mut self, part: u32, steps: u32) {
        let Ok(all) = self.steps() else { return };
        let announced = all.of(self.account.task, part);
        if announced.announce(steps) {
            self.in_kernel(Entry::Futex, || announced.wake(self.kernel()));
        }
    }

    fn await_steps(&mut self, part: u32, steps: u32) -> Result<(), Error> {
        let announced = self.steps()?.of(self.account.task, part);
        if !announced.has(steps) {
            self.in_kernel(Entry::Futex, || announced.wait(self.kernel(), steps));
        }
        Ok(())
    }

    fn page_out(&mut self, start: usize, len: usize) -> Result<(), Error> {
        let range = VaRange::sized(start, len);
        self.call(Entry::Memory, Call::PageOut, |space| {
            space.advise(range, Advice::PageOut)
        })
    }

    fn scan(&mut self) -> Result<bool, Error> {
        let from = self.scanned;
        let seen = self.call(Entry::File, Call::Scan, |space| space.scan(from, TOGETHER))?;
        self.scanned = seen.last().map_or(0, |last| last.region.range.end);
        Ok(!seen.is_empty())
    }

    /// The child is over when this returns.
    fn fork(&mut self, then: Forked) -> Result<Child, Error> {
        let child = self.in_kernel(Entry::Fork, || self.process.fork())?;
        let code = self.live(child, |child| match then {
            Forked::Exits(code) => Ok((child, code)),
            Forked::Execs => Ok((self.in_kernel(Entry::Exec, || child.exec())?, 0)),
        })?;
        Ok(self.ended(code))
    }

    /// Forks a child that runs `program`; the child's time is the task's.
    fn start(&mut self, program: Program<'_, Self::File>) -> Result<Child, Error> {
        let child = self.in_kernel(Entry::Fork, || self.process.fork())?;
        self.live(child, |child| Ok((self.execute(child, program)?, ())))?;
        Ok(self.ended(0))
    }

    fn daemon(&self) -> Option<Daemon> {
        self.given.daemon
    }

    fn write_file(&mut self, file: &Self::File, at: u64, bytes: &[u8]) -> Result<usize, Error> {
        self.in_kernel(Entry::File, || {
            file.write(at, bytes).map_err(failed(Call::Write))
        })
    }

    fn read_file(&mut self, file: &Self::File, at: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        self.in_kernel(Entry::File, || {
            file.read(at, bytes).map_err(failed(Call::Read))
        })
    }

    fn number(&self) -> usize {
        self.account.task
    }

    fn compute(&mut self, nanoseconds: u64) {
        S::Machine::compute(nanoseconds);
    }

    fn wait(&mut self, child: Child) -> Result<u8, Error> {
        let place = match child {
            Child::Process(number) => usize::try_from(number).ok(),
            Child::Thread(_) => None,
        };
        let child = place.and_then(|place| self.children.get_mut(place));
        let child = child.and_then(Option::take);
        while let Some(None) = self.children.last() {
            self.children.pop();
        }
        let end = child.ok_or(Error::Failed(Call::Wait, libc::ECHILD))?;
        self.in_kernel(Entry::Wait, || match end {
            End::Code(code) => Ok(code),
            End::Awaited(over) => over.wait(self.kernel()).map(|()| 0),
        })
    }

    fn descriptor(&mut self, _: &Self::File) -> Result<Descriptor, Error> {
        Ok(self.descriptors.add(Open::new_file()))
    }

    fn pipe(&mut self) -> Result<[Descriptor; 2], Error> {
        let pipe = self.in_kernel(Entry::Descriptor, || Arc::new(Pipe::new()));
        pipe.label();
        let ends = |end| Open::Own(pipe.clone(), end);
        Ok(self.descriptors.add_ends(ends))
    }

    fn close(&mut self, descriptor: Descriptor) -> Result<(), Error> {
        let open = self.descriptors.remove(descriptor)?;
        let kernel = self.kernel();
        self.in_kernel(Entry::Descriptor, || open.close(kernel));
        Ok(())
    }

    fn read_from(&mut self, from: Descriptor, bytes: &mut [u8]) -> Result<usize, Error> {
        let kernel = self.kernel();
        self.in_kernel(Entry::Read, || self.descriptors.read(kernel, from, bytes))
    }

    fn write_to(&mut self, to: Descriptor, bytes: &[u8]) -> Result<usize, Error> {
        let kernel = self.kernel();
        self.in_kernel(Entry::Write, || self.descriptors.write(kernel, to, bytes))
    }

    fn poll_writable(&mut self, descriptor: Descriptor) -> Result<bool, Error> {
        let kernel = self.kernel();
        self.in_kernel(Entry::Poll, || {
            self.descriptors.is_writable(kernel, descriptor)
        })
    }

    fn poll_readable(&mut self, from: &[Descriptor]) -> Result<u64, Error> {
        let kernel = self.kernel();
        self.in_kernel(Entry::Poll, || self.descriptors.poll(kernel, from))
    }

    fn futex_wake(&mut self, address: usize, count: u32) -> Result<u32, Error> {
        let futexes = self.given.services.futexes.as_ref();
        let futexes = futexes.ok_or(Error::Unsupported(Call::FutexWake))?;
        let name = self.name(address);
        let kernel = self.kernel();
        let woken = self.in_kernel(Entry::Futex, || futexes.wake(kernel, name, count as usize));
        Ok(woken as u32)
    }

    fn futex_wait(&mut self, address: usize, value: u32) -> Result<bool, Error> {
        let futexes = self.given.services.futexes.as_ref();
        let futexes = futexes.ok_or(Error::Unsupported(Call::FutexWait))?;
        let name = self.name(address);
        let (kernel, machine) = (self.kernel(), self.space().vm().machine());
        let (word, shift) = word_of(address);
        let still = || {
            // SAFETY: the task's space, in which the CPU runs, stays during the call.
            unsafe { machine.load(word) }.map(|found| (found >> shift) as u32 == value)
        };
        loop {
            match self.in_kernel(Entry::Futex, || futexes.wait(kernel, name, still)) {
                Ok(waited) => return Ok(waited),
                // The kernel looks at the word with its own rights, and brings it first.
                Err(_) => self
                    // SAFETY: the task's space, in which the CPU runs, stays during the call.
                    .touch(Access::Read, |machine| unsafe { machine.load(word) })
                    .map(drop)?,
            }
        }
    }

    fn tasks(&self) -> usize {
        self.given.services.tasks
    }

    fn companions(&self) -> usize {
        self.given.services.companions
    }

    fn pipe_of(&mut self, task: usize) -> Result<[Descriptor; 2], Error> {
        let pipe = self.given.services.pipes.get(task);
        let pipe = pipe.ok_or(Error::Unsupported(Call::Common))?;
        let ends = |end| Open::Common(pipe.clone(), end);
        Ok(self.descriptors.add_ends(ends))
    }

    fn common_memory(&mut self) -> Result<usize, Error> {
        if let Some(common) = self.common {
            return Ok(common.start);
        }
        let services = self.given.services.clone();
        let memory = services.memory.as_ref();
        let memory = memory.ok_or(Error::Unsupported(Call::Common))?;
        let bytes = services.tasks * PAGE_SIZE;
        let start = self.map(bytes, Prot::ReadWrite, Backing::SharedFile(memory))?;
        self.common = Some(VaRange::sized(start, bytes));
        Ok(start)
    }

    fn now(&mut self) -> Result<u64, Error> {
        Ok(S::Machine::now())
    }

    fn sleep_until(&mut self, time: u64) -> Result<(), Error> {
        let kernel = self.kernel();
        self.in_kernel(Entry::Sleep, || kernel.sleep_until(time));
        Ok(())
    }

    fn write(&mut self, address: usize, value: u8) -> Result<(), Error> {
        let (word, shift) = word_of(address);
        // The word is read for its other bytes; the task's access is a write from the first fault
        // on.
        // SAFETY: the task's space, in which the CPU runs, stays during the call.
        let others =
            self.touch(Access::Write, |machine| unsafe { machine.load(word) })? & !(0xff << shift);
        self.touch(Access::Write, |machine| {
            // SAFETY: the task's space, in which the CPU runs, stays during the call.
            unsafe { machine.store(word, others | u64::from(value) << shift) }
        })
    }

    fn read(&mut self, address: usize) -> Result<u8, Error> {
        let (word, shift) = word_of(address);
        // SAFETY: the task's space, in which the CPU runs, stays during the call.
        let value = self.touch(Access::Read, |machine| unsafe { machine.load(word) })?;
        Ok((value >> shift) as u8)
    }
}
