//! Threads, which run in user mode.

use super::signals::{Info, Pending, Set, SignalStack};
use super::usage::Usage;
use super::{HOOKS, NewTask, Process, Signal, Status};
use crate::affinity::Affinity;
use crate::errno::Errno;
use crate::heap;
use crate::system::{Lock, Space, system};
use crate::timers::{Ring, TIMERS};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use ipc::{Entry, Kernel};
use machine::{Clock, Locals, Mmu, PageFault, Tasks};
use metal::{Metal, Trap, TrapFrame};
use sched::Bounds;
use sync::EMBEDDER;

/// Bytes of a thread's name.
pub const NAME: usize = 16;

/// A thread's own state. The thread runs as a task of the scheduler.
pub struct Thread {
    /// The processor's registers in user mode.
    pub frame: Box<TrapFrame>,
    /// The thread's process.
    pub process: Arc<Process>,
    /// The memory of its process.
    pub space: Arc<Space>,
    /// The part of the thread that other threads access.
    pub shared: Arc<ThreadRef>,
    /// The register FS.
    pub thread_pointer: usize,
    /// The address where 0 is written when it ends, and waiters are woken; 0 for none.
    pub clear_tid: usize,
    /// The address of the list of robust locks that it holds, whose waiters are told when it ends;
    /// 0 for none.
    pub robust_list: usize,
    /// The stack that its handlers run on.
    pub signal_stack: SignalStack,
    /// The status with which it ends by itself, if it does.
    exit: Option<Status>,
    /// The call that a signal has interrupted.
    pub(super) interrupted: Option<Interrupted>,
    /// When that call would have timed out, which still applies if it is restarted.
    pub until: Option<u64>,
    /// The CPUs where the scheduler lets it run; `None` until it has run.
    pub(super) bounds: Option<Affinity>,
    /// The mask before a call that waits for signals with another mask.
    pub saved_mask: Option<Set>,
}

/// A call that a signal has interrupted.
#[derive(Clone, Copy)]
pub struct Interrupted {
    /// The thread's number.
    pub number: usize,
    /// True if it is not restarted after a handler has run, even with `SA_RESTART`.
    pub ends_with_handler: bool,
}

/// The part of a thread that other threads access.
pub struct ThreadRef {
    /// The thread's number. A thread that runs a new program gets the number of its process.
    tid: AtomicU32,
    /// The thread's process.
    pub process: Arc<Process>,
    /// Its memory, which `Thread::space` keeps alive. The thread itself uses this when it is back
    /// on a CPU.
    pub(super) space: AtomicPtr<Space>,
    /// Signals for this thread.
    pub pending: Pending,
    /// The blocked signals. Only the thread itself changes this mask.
    pub mask: AtomicU64,
    /// Signals that it waits for by `rt_sigtimedwait`: they end its sleep although the mask blocks
    /// them. Written by the thread itself, before it sleeps.
    awaited: AtomicU64,
    /// True if it is to end, because another thread runs a new program.
    pub(super) dies: AtomicBool,
    /// True if only its end now disturbs it. Only the thread accesses it: relaxed.
    is_patient: AtomicBool,
    /// True if it has to check its state before it returns to user mode: a signal, another mask,
    /// its end. Set after the change and cleared before the check, sequentially consistent.
    called: AtomicBool,
    /// When its wait times out, by the machine's clock; [`u64::MAX`] for never.
    deadline: AtomicU64,
    /// The CPUs where it may run. It migrates before it next returns to user mode.
    pub affinity: Lock<Affinity>,
    /// Its name, up to the first 0.
    pub name: Lock<[u8; NAME]>,
    /// The resources it has used.
    pub usage: Usage,
    /// The key at which it sleeps, among the kernel's sleepers; null if it does not sleep.
    pub(super) sleeps_at: AtomicPtr<()>,
}

impl ThreadRef {
    /// The thread's number.
    pub fn tid(&self) -> u32 {
        self.tid.load(Ordering::Relaxed)
    }

    /// Gives the thread the number of its process.
    pub(super) fn become_first(&self) {
        self.tid.store(self.process.pid, Ordering::Relaxed);
    }

    /// The blocked signals.
    pub fn mask(&self) -> Set {
        Set(self.mask.load(Ordering::Relaxed))
    }

    /// Names the thread after its program: by the last part of the path.
    pub fn set_name(&self, program: &[u8]) {
        let end = program.rsplit(|&byte| byte == b'/').next();
        let end = end.unwrap_or_default();
        let mut name = [0; NAME];
        let count = end.len().min(NAME - 1);
        name[..count].copy_from_slice(&end[..count]);
        *self.name.lock() = name;
    }

    /// Makes the thread check its signals, wherever it is. The caller has set one.
    pub fn interrupt(&self) {
        self.call();
        // The calling thread checks by itself.
        if with_current(|caller| !caller.is_some_and(|caller| ptr::eq(caller, self))) {
            self.wake();
            metal::kick_others();
        }
    }

    /// Makes the thread check its state before it returns to user mode. The caller has made the
    /// change before.
    pub(super) fn call(&self) {
        self.called.store(true, Ordering::SeqCst);
    }

    /// Wakes the thread, if it sleeps.
    pub(super) fn wake(&self) {
        // Sequentially consistent with the thread's steps before it sleeps: it writes the key, then
        // it checks for signals (`Caller::asleep`).
        let key = self.sleeps_at.load(Ordering::SeqCst);
        if !key.is_null() {
            system().kernel.wake(key, usize::MAX);
        }
    }

    /// Returns true if the thread is *disturbed*: it is to wait no longer, because it has a signal
    /// to take, stops, ends, or its wait has timed out.
    pub fn is_disturbed(&self) -> bool {
        if self.ends() || self.is_patient.load(Ordering::Relaxed) {
            return self.ends();
        }
        let deadline = self.deadline.load(Ordering::Relaxed);
        self.next_signal().is_some()
            || self.process.job.is_stopped()
            || deadline != u64::MAX && Metal::now() >= deadline
    }

    /// Returns true if the thread sleeps at the moment.
    pub fn is_asleep(&self) -> bool {
        !self.sleeps_at.load(Ordering::Relaxed).is_null()
    }

    /// Returns true if the thread is to end.
    fn ends(&self) -> bool {
        self.process.ending().is_some() || self.dies.load(Ordering::SeqCst)
    }

    /// Calls `wait`, which waits while the thread is not disturbed, with a timeout at `time`.
    pub fn wait_until<R>(self: &Arc<Self>, time: u64, wait: impl FnOnce() -> R) -> R {
        if time == u64::MAX {
            return wait();
        }
        self.deadline.store(time, Ordering::SeqCst);
        let timers = &*TIMERS;
        let timer = timers.set(time, self.clone());
        let result = wait();
        timers.cancel(timer);
        self.deadline.store(u64::MAX, Ordering::Relaxed);
        result
    }

    /// Takes a pending signal of this set, the thread's own first.
    pub fn take_signal(&self, wanted: Set) -> Option<Info> {
        let mask = Set(!wanted.0);
        let [own, all] = [&self.pending, &self.process.pending];
        let own = own.next(mask).and_then(|next| own.take(next));
        own.or_else(|| all.next(mask).and_then(|next| all.take(next)))
    }

    /// The signal that the thread takes next.
    pub fn next_signal(&self) -> Option<Signal> {
        let mask = Set(self.mask().0 & !self.awaited.load(Ordering::Relaxed));
        let own = self.pending.next(mask);
        own.or_else(|| self.process.pending.next(mask))
    }
}

impl Ring for ThreadRef {
    /// The wait times out.
    fn ring(self: Arc<Self>) {
        self.wake();
    }
}

impl Thread {
    /// A thread of `process`, which does not run yet.
    pub fn new(
        process: Arc<Process>,
        space: Arc<Space>,
        tid: u32,
        frame: Box<TrapFrame>,
    ) -> Result<Self, Errno> {
        let shared = Arc::new(ThreadRef {
            tid: AtomicU32::new(tid),
            process: process.clone(),
            space: AtomicPtr::new(Arc::as_ptr(&space).cast_mut()),
            pending: Pending::new(),
            mask: AtomicU64::new(0),
            awaited: AtomicU64::new(0),
            dies: AtomicBool::new(false),
            is_patient: AtomicBool::new(false),
            called: AtomicBool::new(true),
            deadline: AtomicU64::new(u64::MAX),
            affinity: Lock::new(Affinity::all()),
            name: Lock::new([0; _]),
            usage: Usage::default(),
            sleeps_at: AtomicPtr::new(ptr::null_mut()),
        });
        heap::push(&mut process.threads.lock(), shared.clone())?;
        Ok(Thread {
            frame,
            process,
            space,
            shared,
            thread_pointer: 0,
            clear_tid: 0,
            robust_list: 0,
            signal_stack: SignalStack::default(),
            exit: None,
            interrupted: None,
            until: None,
            bounds: None,
            saved_mask: None,
        })
    }

    /// Starts the thread in its place; `call` performs its system calls.
    pub fn start(self, place: NewTask, call: fn(&mut Thread)) {
        place.start(Box::new(move || self.run(call)));
    }

    /// Sets the register FS.
    pub fn set_thread_pointer(&mut self, value: usize) {
        self.thread_pointer = value;
        metal::set_thread_pointer(value);
    }

    /// Returns true if the thread has a signal to take, or its process ends.
    pub fn is_disturbed(&self) -> bool {
        self.shared.is_disturbed()
    }

    /// Calls `wait`, which waits while the thread is not disturbed, with a timeout at `time`.
    pub fn wait_until<R>(&self, time: u64, wait: impl FnOnce() -> R) -> R {
        self.shared.wait_until(time, wait)
    }

    /// Waits until the thread is disturbed.
    pub fn pause(&self) {
        let key = ptr::from_ref(&*self.shared).cast();
        while !self.is_disturbed() {
            system().kernel.sleep(key, || true);
        }
    }

    /// Waits until one of these signals comes, or the thread is disturbed otherwise. The mask stays
    /// as it is: a sender of one of the signals finds that it is blocked, so the signal stays
    /// pending.
    pub fn await_signals(&self, signals: Set) {
        let awaited = &self.shared.awaited;
        awaited.store(signals.0, Ordering::Relaxed);
        self.pause();
        awaited.store(0, Ordering::Relaxed);
    }

    /// Sleeps at `key` while `waits` returns true and the thread does not end; signals stay
    /// pending.
    pub(super) fn wait_patiently(&self, key: *const (), waits: impl Fn() -> bool) {
        let patient = &self.shared.is_patient;
        patient.store(true, Ordering::Relaxed);
        while waits() && !self.shared.ends() {
            system().kernel.sleep(key, &waits);
        }
        patient.store(false, Ordering::Relaxed);
    }

    /// The blocked signals.
    pub fn mask(&self) -> Set {
        self.shared.mask()
    }

    /// Sets another mask for the current call, after which the old one is restored.
    pub fn mask_meanwhile(&mut self, mask: Set) {
        self.saved_mask = Some(self.mask());
        self.set_mask(mask);
        // This makes the thread restore the old mask.
        self.shared.call();
    }

    /// Sets the blocked signals.
    pub fn set_mask(&self, mask: Set) {
        self.shared.mask.store(mask.maskable().0, Ordering::Relaxed);
        // A signal that is sent from now on makes the thread check by itself.
        if self.shared.next_signal().is_some() {
            self.shared.call();
        }
    }

    /// Lets the thread end by itself.
    pub fn exit(&mut self, status: Status) {
        self.exit = Some(status);
        self.shared.call();
    }

    /// Records that a signal has interrupted the call.
    pub fn interrupted(&mut self, call: Interrupted) {
        self.interrupted = Some(call);
        self.shared.call();
    }

    /// The code of the thread's task.
    fn run(mut self, call: fn(&mut Thread)) {
        enter(&self.shared);
        metal::set_thread_pointer(self.thread_pointer);
        self.shared.usage.begin();
        while !self.shared.called.load(Ordering::SeqCst) || self.looks() {
            match self.frame.run() {
                Trap::SystemCall => call(&mut self),
                Trap::PageFault(fault) => self.page_fault(fault),
                Trap::Exception(number) => self.exception(number),
                Trap::Interrupt => self.interrupt_in_user_mode(),
                Trap::Wanted => self.interrupt_in_kernel(),
            }
        }
        self.finish();
    }

    /// Takes the signals that have come. Returns true if the thread goes on.
    #[cold]
    fn looks(&mut self) -> bool {
        self.shared.called.store(false, Ordering::SeqCst);
        self.take_signals();
        self.keep_bounds();
        self.exit.is_none() && !self.shared.ends()
    }

    /// Accounts for an interrupt in user mode, which has been served.
    #[cold]
    fn interrupt_in_user_mode(&mut self) {
        self.shared.usage.sample_user();
        if Metal::is_wanted() {
            self.give_way();
        }
    }

    /// Accounts for an interrupt that came after the last safe point in the kernel and needs one.
    #[cold]
    fn interrupt_in_kernel(&mut self) {
        self.shared.usage.sample_kernel();
        self.give_way();
    }

    /// Lets other threads run before the thread returns to user mode.
    fn give_way(&self) {
        self.shared.usage.away(Metal::safe_point);
    }

    fn page_fault(&mut self, fault: PageFault) {
        self.shared.usage.add_fault();
        // The tables and lists of touched memory take room on the heap.
        if heap::is_nearly_empty() {
            return self.process.end(Status::killed(Signal::KILL));
        }
        let kernel = &system().kernel;
        kernel.enter(Entry::Fault);
        let handled = self.space.fault(fault);
        kernel.leave(Entry::Fault);
        // SEGV_MAPERR and SEGV_ACCERR; BUS_ADRERR.
        let (signal, code) = match handled {
            Ok(()) => return,
            Err(vm::Error::Segv(_)) => match self.space.region_at(fault.address) {
                Some(_) => (Signal::SEGV, 2),
                None => (Signal::SEGV, 1),
            },
            Err(vm::Error::Bus { .. } | vm::Error::Io(_)) => (Signal::BUS, 2),
            // Memory is short.
            Err(_) => return self.process.end(Status::killed(Signal::KILL)),
        };
        self.fault_signal(Info::fault(signal, code, fault.address));
    }

    fn exception(&mut self, number: usize) {
        let here = |signal, code| Info::fault(signal, code, self.frame.rip());
        let info = match number {
            // FPE_INTDIV. The other exceptions do not give the cause.
            0 => here(Signal::FPE, 1),
            16 | 19 => here(Signal::FPE, 8),
            // TRAP_TRACE.
            1 => here(Signal::TRAP, 2),
            3 => Info::kernel(Signal::TRAP),
            // ILL_ILLOPN.
            6 => here(Signal::ILL, 2),
            12 => Info::kernel(Signal::BUS),
            // BUS_ADRALN.
            17 => Info::fault(Signal::BUS, 1, 0),
            _ => Info::kernel(Signal::SEGV),
        };
        self.fault_signal(info);
    }

    /// Wakes the waiters at words of the thread's memory, which it no longer uses. The thread no
    /// longer runs in user mode.
    pub(super) fn leave_words(&mut self) {
        self.leave_locks();
        let at = core::mem::take(&mut self.clear_tid);
        if at != 0 && self.write(at, 0u32).is_ok() {
            self.wake_at(at);
        }
    }

    /// Does what is left to do when the thread has ended.
    fn finish(mut self) {
        let status = self.exit.unwrap_or(Status::exited(0));
        self.leave_words();
        let Thread {
            process,
            shared,
            space,
            ..
        } = self;
        leave();
        drop(space);
        if !process.remove(&shared) {
            return;
        }
        process.end(status);
        if process.pid == 1 {
            let status = process.ending().unwrap_or(status);
            metal::report::report(format_args!("exit {}", status.code()));
            metal::report::end(0);
        }
        process.end_alarms();
        // The space is dropped, unless other processes share it.
        let space = process.space.lock().take();
        drop(space);
        process.give_memory_back();
        (HOOKS.memory_given_up)();
        (HOOKS.ending)(&process);
        let files = core::mem::take(&mut *process.files.lock());
        files.all().for_each(|file| file.closed_by(process.pid));
        drop(files);
        let program = core::mem::take(&mut *process.program.lock());
        drop(program);
        // Release: pairs with the acquire in `job::group`.
        process.has_finished.store(true, Ordering::Release);
        (HOOKS.ended)(&process);
        process.leave_family();
    }
}

impl Process {
    /// The process's thread with this number.
    pub fn thread(&self, tid: u32) -> Option<Arc<ThreadRef>> {
        let threads = self.threads.lock();
        threads.iter().find(|thread| thread.tid() == tid).cloned()
    }
}

/// Calls `wait`, which waits while the calling thread is not disturbed, with a timeout at `time`.
pub fn wait_until<R>(time: u64, wait: impl FnOnce() -> R) -> R {
    let caller = with_current(|thread| {
        let thread = thread?;
        let threads = thread.process.threads.lock();
        threads
            .iter()
            .find(|it| ptr::eq(Arc::as_ptr(it), thread))
            .cloned()
    });
    match caller {
        Some(thread) => thread.wait_until(time, wait),
        None => wait(),
    }
}

/// Makes the calling task `thread`, which runs in its space on any CPU.
fn enter(thread: &ThreadRef) {
    Metal::with_locals(|locals| {
        locals.words[EMBEDDER].set(ptr::from_ref(thread).expose_provenance());
        locals.at_switch.set(Some(back));
    });
    activate(thread);
}

/// Activates the space of the calling task, a thread, which is back on a CPU.
fn back(_: &Locals) {
    with_current(|thread| thread.into_iter().for_each(activate));
}

fn activate(thread: &ThreadRef) {
    let space = thread.space.load(Ordering::Relaxed);
    // SAFETY: the calling thread keeps it, and has set it itself.
    unsafe { &*space }.activate();
}

/// Makes the calling task no thread any more.
fn leave() {
    Metal::with_locals(|locals| {
        locals.at_switch.set(None);
        locals.words[EMBEDDER].set(0);
    });
    Metal.deactivate();
}

/// Calls `f` with the calling task's thread, if it is one.
pub fn with_current<R>(f: impl FnOnce(Option<&ThreadRef>) -> R) -> R {
    let address = Metal::with_locals(|locals| locals.words[EMBEDDER].get());
    let thread = ptr::with_exposed_provenance::<ThreadRef>(address);
    // SAFETY: a task that is a thread keeps it, and leaves it before it gives it up.
    f(unsafe { thread.as_ref() })
}
