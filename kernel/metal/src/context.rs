//! Contexts: a stack, saved registers and a task's words.

use crate::cpu::{Cpu, Pin};
use crate::mmu::Tables;
use crate::stacks::Stack;
use crate::{Metal, clock, mmu};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, UnsafeCell};
use core::mem::offset_of;
use core::ptr::{NonNull, drop_in_place};
use core::sync::atomic::{AtomicBool, Ordering};
use machine::{Contexts, Cpus, Job, Locals, Tasks, Topology};
use x86_64::VirtAddr;
use x86_64::instructions::interrupts;
use x86_64::registers::model_specific::FsBase;

/// The name of a context. Contexts are reused, never freed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Context(NonNull<Body>);

// SAFETY: a name; `Body` documents the accesses to it.
unsafe impl Send for Context {}
// SAFETY: a name; `Body` documents the accesses to it.
unsafe impl Sync for Context {}

type Exit = Box<dyn FnOnce() -> Context + Send>;

/// A context. Only the CPU that runs it accesses its cells, and before that its creator.
struct Body {
    stack: Option<Stack>,
    /// The stack pointer, while no CPU runs the context.
    saved: Cell<usize>,
    /// The task's words.
    locals: UnsafeCell<Locals>,
    /// True if a CPU runs the context.
    runs: AtomicBool,
    /// The register FS in user mode.
    thread_pointer: Cell<usize>,
    /// The tables by which it translates, and the index of the CPU on which it does.
    tables: Cell<(Option<Tables>, usize)>,
    /// The task's job and its exit function.
    work: Cell<Option<(Job, Exit)>>,
    /// The next in the list of unused contexts; guarded by [`BUSY`].
    next: Cell<Option<Context>>,
}

/// The list of contexts without a job; [`BUSY`] is its lock.
static UNUSED: machine::NativeCell<Option<Context>> = machine::NativeCell::holding(None);
static BUSY: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn switch_stacks(from: *mut usize, to: usize);
    fn begin_context();
}

impl Context {
    /// A context with this stack; `None` if the heap has no room.
    fn new(stack: Option<Stack>) -> Option<Self> {
        let mut place = Vec::new();
        place.try_reserve_exact(1).ok()?;
        place.push(Body {
            stack,
            saved: Cell::new(0),
            locals: UnsafeCell::new(Locals::ZERO),
            runs: AtomicBool::new(false),
            thread_pointer: Cell::new(0),
            tables: Cell::new((None, 0)),
            work: Cell::new(None),
            next: Cell::new(None),
        });
        place
            .leak()
            .first()
            .map(|body| Context(NonNull::from(body)))
    }

    fn body(&self) -> &Body {
        // SAFETY: contexts are never freed.
        unsafe { self.0.as_ref() }
    }

    /// The words of the task.
    pub(crate) fn locals(&self) -> *mut Locals {
        self.body().locals.get()
    }

    /// Resets the task's words to 0, and drops the old ones.
    pub(crate) fn drop_locals(&self) {
        // SAFETY: the calling context's own, and no reference is left when its job has ended. They
        // are dropped and written where they stand: there are many.
        unsafe {
            drop_in_place(self.locals());
            self.locals().write(Locals::ZERO);
        }
    }

    /// Takes an unused context or makes a new one; `None` if memory is short.
    fn take() -> Option<Self> {
        let unused = list(|first| {
            let taken = *first;
            *first = taken.and_then(|taken| taken.body().next.take());
            taken
        });
        unused.or_else(|| Self::new(Some(Stack::new()?)))
    }

    fn give(self) {
        list(|first| self.body().next.set(first.replace(self)));
    }
}

/// Calls `f` with the list of unused contexts, under its lock.
fn list<R>(f: impl FnOnce(&mut Option<Context>) -> R) -> R {
    use machine::SharedCell;
    // Acquire and release: a holder of the lock sees the earlier holders' writes. The kernel is not
    // preempted, and handlers use no contexts.
    Metal::spin_until(|| !BUSY.swap(true, Ordering::Acquire));
    // SAFETY: under the lock.
    let result = f(unsafe { &mut *UNUSED.write() });
    BUSY.store(false, Ordering::Release);
    result
}

/// Makes the running code of `cpu` a context of its own.
pub(crate) fn adopt(cpu: &Cpu) {
    let context = Context::new(None).expect("memory for the CPUs' contexts");
    cpu.context.set(Some(context));
}

/// Sets the register FS of the calling task's user mode.
pub fn set_thread_pointer(value: usize) {
    Metal::context().body().thread_pointer.set(value);
    load_thread_pointer(Cpu::this(), value);
}

fn load_thread_pointer(cpu: &Cpu, value: usize) {
    if cpu.thread_pointer.replace(value) != value {
        FsBase::write(VirtAddr::new_truncate(value as u64));
    }
}

/// Returns true if a CPU runs the task with these words.
pub(crate) fn runs(locals: usize) -> bool {
    let body = (locals - offset_of!(Body, locals)) as *const Body;
    // SAFETY: all words that tasks have are contexts', which are never freed.
    unsafe { &*body }.runs.load(Ordering::Relaxed)
}

/// Makes `to` the calling CPU's context; returns the one that it ran.
fn go_on_with(to: Context) -> Context {
    let cpu = Cpu::this();
    let from = cpu.context.replace(Some(to)).expect("a CPU runs a context");
    from.body().runs.store(false, Ordering::Relaxed);
    to.body().runs.store(true, Ordering::Relaxed);
    load_thread_pointer(cpu, to.body().thread_pointer.get());
    from.body().tables.set((cpu.tables.get(), cpu.index.get()));
    let (tables, at) = to.body().tables.get();
    // After another space's tables, a task that is told that it is back activates its space itself,
    // which also says that the CPU has come there. SAFETY: the context is not running, and nothing
    // has a reference to its words.
    let is_told = unsafe { (*to.locals()).at_switch.get().is_some() };
    let may_go_on = at == cpu.index.get() && (!is_told || tables == cpu.last_tables.get());
    mmu::translate_by(cpu, tables.filter(|_| may_go_on));
    from
}

/// Completes a switch to the calling context: the one that its CPU ran before is off its stack.
fn arrived() {
    if let Some(ended) = Cpu::this().ended.take() {
        ended.give();
    }
}

/// The first function of a context, called by `trap.s`.
#[unsafe(no_mangle)]
extern "C" fn metal_begin(body: NonNull<Body>) -> ! {
    arrived();
    let me = Context(body);
    let (job, exit) = me.body().work.take().expect("a context has a job");
    job();
    me.drop_locals();
    let next = exit();
    me.drop_locals();
    go_on_with(next);
    Cpu::this().ended.set(Some(me));
    // SAFETY: no CPU runs the next context, and only this one is about to. Nothing switches back
    // here, and this context is free once it is left.
    unsafe { switch_stacks(me.body().saved.as_ptr(), next.body().saved.get()) };
    unreachable!("an ended context goes on")
}

impl Contexts for Metal {
    type Context = Context;

    fn create(job: Job, exit: Exit) -> Option<Context> {
        let context = Context::take()?;
        let body = context.body();
        body.work.set(Some((job, exit)));
        body.thread_pointer.set(0);
        body.tables.set((None, 0));
        // The words that `switch_stacks` takes off a stack: six registers (`rbx` is the fifth from
        // the end), and the return address. The rest keeps the stack aligned.
        let top = body.stack.expect("a task has a stack").top();
        let begin = begin_context as *const () as usize;
        let words = [0, 0, 0, 0, 0, context.0.as_ptr().addr(), begin, 0, 0];
        let start = top - size_of_val(&words);
        // SAFETY: the end of a stack that is not in use.
        unsafe { (start as *mut [usize; 9]).write(words) };
        body.saved.set(start);
        Some(context)
    }

    fn context() -> Context {
        Cpu::this().context.get().expect("a CPU runs a context")
    }

    fn first_pin() -> Pin {
        Pin::counted()
    }

    unsafe fn switch(to: Context, _ready: u64) {
        debug_assert!(
            Metal::pins() == 1,
            "a task leaves its CPU with {} pins",
            Metal::pins()
        );
        let from = go_on_with(to);
        if from != to {
            // SAFETY: the caller says that `to` runs nowhere; its stack pointer is saved.
            unsafe { switch_stacks(from.body().saved.as_ptr(), to.body().saved.get()) };
        }
        arrived();
    }

    fn set_timer(time: u64) {
        clock::set_timer(time);
    }

    fn kick(cpu: usize) {
        let pin = Metal::pin();
        let target = Cpu::of(cpu);
        if target.index.get() == Cpu::this().index.get() {
            target.pending.store(true, Ordering::Relaxed)
        } else {
            crate::apic::send(target.apic.get(), u32::from(crate::apic::KICK))
        }
        drop(pin);
    }

    fn wait_for_interrupt(pin: Pin) {
        wait(Cpu::this());
        drop(pin);
        Metal::safe_point();
    }
}

/// Interrupts all other CPUs, so that threads there leave user mode.
pub fn kick_others() {
    let pin = Metal::pin();
    let here = Cpu::this().index.get();
    let others = (0..Metal.cpus().len()).filter(|&cpu| cpu != here);
    others.for_each(Metal::kick);
    drop(pin);
}

/// Waits until the calling CPU has an interrupt for its scheduler.
pub(crate) fn wait(cpu: &Cpu) {
    interrupts::disable();
    cpu.idle.store(true, Ordering::Relaxed);
    while !cpu.pending.load(Ordering::Relaxed) {
        interrupts::enable_and_hlt();
        interrupts::disable();
    }
    cpu.idle.store(false, Ordering::Relaxed);
    interrupts::enable();
}
