//! Tasks and time, with one task per CPU or with a scheduler's tasks.

use crate::Sim;
use crate::engine::{self, Engine, Running};
use core::marker::PhantomData;
use machine::{Anchor, Clock, Contexts, CpuId, Cpus, Job, Locals, Pinned, Tasks};

/// A task: a CPU, and the number of its job; or no CPU, and the name that its scheduler gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub(crate) cpu: CpuId,
    pub(crate) serial: u64,
}

/// A pin of the calling CPU. While a task holds one, no scheduler takes it off its CPU, and it must
/// not sleep. Counting pins takes no simulated time.
pub struct Pin {
    cpu: CpuId,
    /// A pin belongs to its task.
    not_send: PhantomData<*mut ()>,
}

impl Pinned for Pin {
    #[inline]
    fn cpu(&self) -> CpuId {
        self.cpu
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        if let Some(running) = Running::current() {
            running.with(|engine| engine.unpin());
        }
    }
}

/// The id of the calling CPU.
fn cpu() -> CpuId {
    let id = |engine: &mut Engine| engine.range.cpu(engine.running);
    Running::current().map_or(CpuId::NONE, |running| running.with(id))
}

// SAFETY: a CPU has one job at a time, and a job stays on its CPU; with a scheduler, a task that
// holds a pin is interrupted at no safe point, and panics if it sleeps.
unsafe impl Cpus for Sim {
    type Pin = Pin;

    fn pin() -> Pin {
        let pin = |running: Running| running.with(|engine| engine.pin());
        Pin {
            cpu: Running::current().map_or(CpuId::NONE, pin),
            not_send: PhantomData,
        }
    }

    fn pins() -> u32 {
        Running::current().map_or(0, |running| running.with(|engine| engine.context().pins))
    }

    /// The calling CPU's socket.
    fn numa_node() -> usize {
        let socket = |engine: &mut Engine| engine.profile.topology.place(engine.running).socket;
        Running::current().map_or(0, |running| running.with(socket))
    }

    fn relax(round: u32) {
        engine::relax(round);
    }

    fn delay(pauses: u32) {
        engine::delay(pauses);
    }
}

thread_local! {
    /// The words of code outside the simulated CPUs.
    static OUTSIDE: Locals = const { Locals::ZERO };
}

/// The anchor of code outside the simulated CPUs.
static OUTSIDE_ANCHOR: Anchor = Anchor::new();

impl Tasks for Sim {
    type Task = Task;

    fn current_task() -> Task {
        if let Some(scheduler) = Running::current().and_then(Running::scheduler) {
            return Task {
                cpu: CpuId::NONE,
                serial: scheduler.current_task().0,
            };
        }
        let serial = |running: Running| running.with(|engine| engine.cpu().task());
        Task {
            cpu: cpu(),
            serial: Running::current().map_or(0, serial),
        }
    }

    fn park() {
        engine::park();
    }

    fn unpark(task: Task) {
        engine::unpark(task);
    }

    fn yield_now() {
        engine::yield_now();
    }

    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        let Some(running) = Running::current() else {
            return OUTSIDE.with(f);
        };
        let locals = running.with(|engine| engine.context().locals);
        // SAFETY: the words are on the stack of the running job, below everything that calls this,
        // and the pointer is null when they no longer exist.
        match unsafe { locals.as_ref() } {
            Some(locals) => f(locals),
            None => OUTSIDE.with(f),
        }
    }

    fn safe_point() {
        engine::safe_point();
    }

    fn is_running(locals: usize) -> Option<bool> {
        engine::is_running(locals)
    }

    fn is_wanted() -> bool {
        engine::is_wanted()
    }

    fn anchor() -> &'static Anchor {
        let Some(running) = Running::current() else {
            return &OUTSIDE_ANCHOR;
        };
        let anchor = running.with(|engine| core::ptr::from_ref(&engine.anchor));
        // SAFETY: the anchor stays in place while the machine exists, and only code on its CPUs,
        // which the machine outlives, calls this.
        unsafe { &*anchor }
    }
}

impl Clock for Sim {
    const FREE: bool = true;

    fn now() -> u64 {
        let clock = |running: Running| running.with(|engine| engine.cpu().clock / 1000);
        Running::current().map_or(0, clock)
    }

    fn sleep_until(time: u64) {
        if Self::now() < time {
            engine::sleep(|_| time.saturating_mul(1000));
        }
    }
}

impl Contexts for Sim {
    type Context = usize;

    fn create(job: Job, exit: Box<dyn FnOnce() -> usize + Send>) -> Option<usize> {
        // In turn, because the choice of the stack must not depend on how far CPUs run ahead.
        engine::in_turn()?.with(|engine| engine.create(job, exit))
    }

    fn context() -> usize {
        let current = |engine: &mut Engine| engine.current;
        let running = Running::current().expect("a context runs on a CPU");
        running.with(current)
    }

    fn first_pin() -> Pin {
        Pin {
            cpu: cpu(),
            not_send: PhantomData,
        }
    }

    unsafe fn switch(to: usize, ready: u64) {
        engine::switch(to, ready.saturating_mul(1000));
    }

    fn set_timer(time: u64) {
        engine::set_timer(time.saturating_mul(1000));
    }

    fn kick(cpu: usize) {
        engine::kick(cpu);
    }

    fn wait_for_interrupt(pin: Pin) {
        engine::wait_for_interrupt();
        drop(pin);
        engine::safe_point();
    }
}
