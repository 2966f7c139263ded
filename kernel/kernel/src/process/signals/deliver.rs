//! Delivery of signals to a thread.

use super::{Action, Info, Set, Signal};
use crate::process::{Status, Thread};
use linux_raw_sys::general::{SA_NODEFER, SA_RESETHAND, SA_RESTART};

impl Thread {
    /// Takes the signals that have come, and sleeps while the process is stopped.
    pub fn take_signals(&mut self) {
        loop {
            self.stay_stopped();
            if self.process.ending().is_some() {
                return;
            }
            let Some(signal) = self.shared.next_signal() else {
                break;
            };
            let own = self.shared.pending.take(signal);
            // Another thread may have taken the signal first.
            if let Some(info) = own.or_else(|| self.process.pending.take(signal)) {
                self.act(info);
            }
        }
        // No handler runs, so a call that waited is restarted.
        if let Some(mask) = self.saved_mask.take() {
            self.set_mask(mask);
        }
        if let Some(call) = self.interrupted.take() {
            self.restart(call.number);
        }
    }

    /// Sends a signal that the thread itself has caused, and cannot block.
    pub fn fault_signal(&mut self, info: Info) {
        let action = self.process.handlers.lock().get(info.signal);
        let is_held = self.mask().has(info.signal);
        if is_held || matches!(action.handler, Action::DEFAULT | Action::IGNORE) {
            return self.process.end(Status::killed(info.signal));
        }
        self.act(info);
    }

    fn act(&mut self, info: Info) {
        let signal = info.signal;
        let action = {
            let mut handlers = self.process.handlers.lock();
            let action = handlers.get(signal);
            if action.flags & SA_RESETHAND != 0 {
                let handler = Action::DEFAULT;
                handlers.set(signal, Action { handler, ..action });
            }
            action
        };
        match action.handler {
            Action::DEFAULT if signal.stops() => self.process.stop(signal),
            Action::DEFAULT if !signal.is_ignored_by_default() => {
                self.process.end(Status::killed(signal));
            }
            Action::DEFAULT | Action::IGNORE => {}
            _ => self.handle(action, info),
        }
    }

    /// Makes the thread continue in its handler.
    fn handle(&mut self, action: Action, info: Info) {
        self.until = None;
        if let Some(call) = self.interrupted.take()
            && action.flags & SA_RESTART != 0
            && !call.ends_with_handler
        {
            self.restart(call.number);
        }
        if self.push_handler(&action, &info).is_err() {
            return self.process.end(Status::killed(Signal::SEGV));
        }
        self.saved_mask = None;
        let mut mask = self.mask().0 | action.mask.0;
        if action.flags & SA_NODEFER == 0 {
            mask |= info.signal.set().0;
        }
        self.set_mask(Set(mask));
    }

    /// Makes the thread repeat its call.
    fn restart(&mut self, number: usize) {
        /// Bytes of the instruction `syscall`.
        const CALL: usize = 2;
        self.frame.rax = number;
        self.frame.go_to(self.frame.rip().wrapping_sub(CALL));
    }
}
