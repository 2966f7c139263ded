//! What a system call takes beside the lines it touches.

use workloads::{Backing, Child, Descriptor, Error, Forked, Prot, System};

/// Our VM as tasks of a simulated machine see it: each call enters the kernel, and
/// computes what the simulator does not see.
pub struct Timed<S> {
    system: S,
    /// Nanoseconds a call.
    call: f64,
}

/// By how much the computing of a call varies, at random, as a share.
const JITTER: f64 = 0.1;

impl<S: System> Timed<S> {
    /// `system`, each call taking `call` nanoseconds more.
    pub fn new(system: S, call: f64) -> Self {
        Timed { system, call }
    }

    fn enter(&mut self) -> &mut S {
        const STEPS: u64 = 1 << 16;
        let chance = sim::dice(STEPS) as f64 / STEPS as f64;
        sim::system_call();
        sim::compute(self.call * (1.0 + JITTER * (2.0 * chance - 1.0)));
        &mut self.system
    }
}

impl<S: System> System for Timed<S> {
    type File = S::File;

    fn page_size(&self) -> usize {
        self.system.page_size()
    }

    fn map(
        &mut self,
        len: usize,
        prot: Prot,
        backing: Backing<'_, Self::File>,
    ) -> Result<usize, Error> {
        self.enter().map(len, prot, backing)
    }

    fn unmap(&mut self, start: usize, len: usize) -> Result<(), Error> {
        self.enter().unmap(start, len)
    }

    fn protect(&mut self, start: usize, len: usize, prot: Prot) -> Result<(), Error> {
        self.enter().protect(start, len, prot)
    }

    fn discard(&mut self, start: usize, len: usize) -> Result<(), Error> {
        self.enter().discard(start, len)
    }

    fn program_break(&mut self) -> Result<usize, Error> {
        self.enter().program_break()
    }

    fn set_program_break(&mut self, to: usize) -> Result<(), Error> {
        self.enter().set_program_break(to)
    }

    fn file(&mut self, len: usize) -> Result<Self::File, Error> {
        self.enter().file(len)
    }

    fn remap(&mut self, start: usize, len: usize, new_len: usize) -> Result<usize, Error> {
        self.enter().remap(start, len, new_len)
    }

    fn page_out(&mut self, start: usize, len: usize) -> Result<(), Error> {
        self.enter().page_out(start, len)
    }

    fn descriptor(&mut self, file: &Self::File) -> Result<Descriptor, Error> {
        self.system.descriptor(file)
    }

    fn open(&mut self) -> Result<Descriptor, Error> {
        self.enter().open()
    }

    fn close(&mut self, descriptor: Descriptor) -> Result<(), Error> {
        self.enter().close(descriptor)
    }

    fn lock_record(&mut self, file: Descriptor) -> Result<(), Error> {
        self.enter().lock_record(file)
    }

    fn unlock_record(&mut self, file: Descriptor) -> Result<(), Error> {
        self.enter().unlock_record(file)
    }

    fn poll_writable(&mut self, descriptor: Descriptor) -> Result<bool, Error> {
        self.enter().poll_writable(descriptor)
    }

    fn pipe(&mut self) -> Result<[Descriptor; 2], Error> {
        self.enter().pipe()
    }

    fn socket_pair(&mut self) -> Result<[Descriptor; 2], Error> {
        self.enter().socket_pair()
    }

    fn write_to(&mut self, to: Descriptor, bytes: &[u8]) -> Result<usize, Error> {
        self.enter().write_to(to, bytes)
    }

    fn read_from(&mut self, from: Descriptor, bytes: &mut [u8]) -> Result<usize, Error> {
        self.enter().read_from(from, bytes)
    }

    fn futex_wake(&mut self, address: usize, count: u32) -> Result<u32, Error> {
        self.enter().futex_wake(address, count)
    }

    fn handle_signals(&mut self) -> Result<(), Error> {
        self.enter().handle_signals()
    }

    fn raise(&mut self) -> Result<(), Error> {
        self.enter().raise()
    }

    fn fork(&mut self, then: Forked) -> Result<Child, Error> {
        self.enter().fork(then)
    }

    fn wait(&mut self, child: Child) -> Result<u8, Error> {
        self.enter().wait(child)
    }

    fn start_echo(&mut self, from: Descriptor, to: Descriptor) -> Result<Child, Error> {
        self.enter().start_echo(from, to)
    }

    fn signals(&mut self) -> Result<u64, Error> {
        self.system.signals()
    }

    // Touching memory enters no kernel; if it faults, the machine charges for that.

    fn write(&mut self, address: usize, value: u8) -> Result<(), Error> {
        self.system.write(address, value)
    }

    fn read(&mut self, address: usize) -> Result<u8, Error> {
        self.system.read(address)
    }
}
