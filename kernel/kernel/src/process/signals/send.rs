//! Sending signals.

use super::{Action, Info, Set, Signal};
use crate::errno::Errno;
use crate::process::{FIRST, Process, Status, ThreadRef};

impl Process {
    /// Sends a signal to any thread.
    pub fn send(&self, info: Info) -> Result<(), Errno> {
        self.prepare(info.signal);
        if info.signal == Signal::KILL && self.pid != FIRST {
            // This has its effect at once: no thread needs to take the signal, and a stopped one
            // takes none.
            self.end(Status::killed(Signal::KILL));
            return Ok(());
        }
        let threads = self.threads.lock();
        if threads.iter().any(|thread| thread.ends_by(info.signal)) {
            drop(threads);
            self.end(Status::killed(info.signal));
            return Ok(());
        }
        let mask = threads.first().map_or(Set::EMPTY, |thread| thread.mask());
        if self.keeps(info.signal, mask) {
            self.pending.add(info)?;
            threads.iter().for_each(|thread| thread.interrupt());
        }
        Ok(())
    }

    /// Sends a signal from the kernel, one that is not queued.
    pub fn notify(&self, signal: Signal) {
        // This fails only for queued signals.
        let _ = self.send(Info::kernel(signal));
    }

    /// Sends a signal to a thread; [`Errno::SRCH`] if there is none with this number.
    pub fn send_to(&self, tid: u32, info: Info) -> Result<(), Errno> {
        self.prepare(info.signal);
        let threads = self.threads.lock();
        let thread = threads.iter().find(|thread| thread.tid() == tid);
        let thread = thread.ok_or(Errno::SRCH)?.clone();
        drop(threads);
        match info.signal {
            Signal::KILL => self.send(info),
            _ => thread.receive(info),
        }
    }

    /// Drops pending instances of a signal, which the process now ignores.
    pub fn forget_signal(&self, signal: Signal) {
        self.pending.forget(signal.set());
        let threads = self.threads.lock();
        let all = threads.iter();
        all.for_each(|thread| thread.pending.forget(signal.set()));
    }

    /// Applies the immediate effects of sending, which do not depend on the process's action.
    fn prepare(&self, signal: Signal) {
        let opposite = match signal {
            Signal::CONTINUE => Set::STOPS,
            stop if stop.stops() => Signal::CONTINUE.set(),
            _ => return,
        };
        self.pending.forget(opposite);
        let threads = self.threads.lock();
        threads
            .iter()
            .for_each(|thread| thread.pending.forget(opposite));
        drop(threads);
        if signal == Signal::CONTINUE {
            self.go_on();
        }
    }

    /// Returns true if the process has the default action for the signal, and that ends it.
    fn dies_of(&self, signal: Signal) -> bool {
        let is_default = self.handlers.lock().get(signal).handler == Action::DEFAULT;
        is_default && self.pid != FIRST && !signal.stops() && !signal.is_ignored_by_default()
    }

    /// Returns true if a signal is kept for a thread that blocks `mask`.
    fn keeps(&self, signal: Signal, mask: Set) -> bool {
        let handlers = self.handlers.lock();
        let is_default = handlers.get(signal).handler == Action::DEFAULT;
        let is_first = self.pid == FIRST && is_default;
        !is_first && (mask.has(signal) || !handlers.ignores(signal))
    }
}

impl ThreadRef {
    /// Returns true if the signal ends the process at once, even if the thread waits in `vfork`,
    /// where it takes no other signals. A stopped process takes the signal when it is continued.
    fn ends_by(&self, signal: Signal) -> bool {
        let process = &self.process;
        !self.mask().has(signal) && !process.job.is_stopped() && process.dies_of(signal)
    }

    fn receive(&self, info: Info) -> Result<(), Errno> {
        if self.ends_by(info.signal) {
            self.process.end(Status::killed(info.signal));
            return Ok(());
        }
        if self.process.keeps(info.signal, self.mask()) {
            self.pending.add(info)?;
            self.interrupt();
        }
        Ok(())
    }
}
