//! Contexts: the coroutines between which a CPU's thread goes.
//!
//! Context *i* is CPU *i*'s own for each CPU; the further ones are those of a scheduler's tasks.
//! The thread's own stack only resumes them, one after the other ([`Crew::run`]): a context that
//! continues with another one suspends itself, and says with which.
//!
//! # The owner of a context
//! A context belongs to the CPU that runs it, from [`Crew::resume`] until that has returned; then
//! to the one to which the scheduler gives it. The scheduler hands it over with release and
//! acquire, after the CPU has continued with another context ([`Contexts::switch`]). So its words
//! need no order of their own.

use crate::crew::Crew;
use crate::stacks::{ContextStack, Stacks};
use crate::{Hosted, Pin, words};
use core::cell::UnsafeCell;
use core::ptr::{drop_in_place, from_ref, null, with_exposed_provenance_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use machine::{Clock, Contexts, Job, Locals};
use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// The most contexts of a machine, those of its CPUs included.
const MOST: usize = 8192;

/// The message of a context to its CPU's thread when it suspends itself.
pub(crate) enum Left {
    /// The CPU continues with this context.
    For(usize),
    /// No task is left: the thread ends.
    Work,
}

/// The last call of an ending task; returns the context that the CPU continues with.
type Exit = Box<dyn FnOnce() -> usize + Send>;
/// The context that the CPU continues with, and the payload of the job's panic.
type Ending = (usize, Option<Box<dyn Any + Send>>);
type Body = Coroutine<(), Left, Ending, ContextStack>;

/// Nanoseconds that tasks have been off CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Off {
    /// The time while they waited for something else.
    pub blocked: u64,
    /// The time while they were ready to run.
    pub queued: u64,
}

/// A context. Its words belong to the CPU that has it (see the module); they are atomic so that
/// they can be shared, and relaxed throughout.
struct Context {
    body: UnsafeCell<Option<Body>>,
    /// Where the running coroutine suspends itself.
    yielder: AtomicPtr<Yielder<(), Left>>,
    /// The address of the task's words; 0 if they are gone.
    locals: AtomicUsize,
    /// Pins that the task holds, if they are counted.
    pins: AtomicUsize,
    /// True if a CPU runs it: read by any.
    on: AtomicBool,
    /// True if it waits for another task's work, in whose account that time is.
    stands_by: AtomicBool,
    /// Since when no CPU runs it.
    left: AtomicU64,
    /// Since when it is ready.
    ready: AtomicU64,
    /// The time for which no CPU ran it, up to its last return.
    off: AtomicU64,
}

// SAFETY: the body is used by the CPU that has the context, or by its maker (see the module); the
// rest is atomic. Values on a task's stack move between threads with it: none of them may be bound
// to a thread, which code on a machine's CPUs never is.
unsafe impl Sync for Context {}
// SAFETY: the body and what is on its stack may move between threads (see above).
unsafe impl Send for Context {}

/// All contexts of a machine.
pub(crate) struct Pool {
    stacks: Stacks,
    all: Box<[Context]>,
    unused: Mutex<Unused>,
}

/// The contexts without a job.
struct Unused {
    /// Contexts that have had a job.
    again: Vec<usize>,
    /// The index from which on no context has had a job.
    fresh: usize,
}

impl Pool {
    /// A pool without contexts.
    pub(crate) fn new() -> io::Result<Self> {
        let empty = |_| Context {
            body: UnsafeCell::new(None),
            yielder: AtomicPtr::default(),
            locals: AtomicUsize::new(0),
            pins: AtomicUsize::new(0),
            on: AtomicBool::new(false),
            stands_by: AtomicBool::new(false),
            left: AtomicU64::new(0),
            ready: AtomicU64::new(0),
            off: AtomicU64::new(0),
        };
        Ok(Pool {
            stacks: Stacks::reserve(MOST)?,
            all: (0..MOST).map(empty).collect(),
            unused: Mutex::new(Unused {
                again: Vec::new(),
                fresh: 0,
            }),
        })
    }

    /// A context that runs `job` and ends with `exit`, pinned if it is a task's; `None` if memory
    /// is short.
    fn create(&self, job: Job, exit: Option<Exit>) -> Option<usize> {
        let index = self.take()?;
        let context = &self.all[index];
        let pins = usize::from(exit.is_some());
        let body = Coroutine::with_stack(self.stacks.stack(index), move |yielder, ()| {
            begin(index, yielder, job, exit)
        });
        // SAFETY: the context is unused, and the caller's alone.
        unsafe { *context.body.get() = Some(body) };
        context.pins.store(pins, Ordering::Relaxed);
        context.off.store(0, Ordering::Relaxed);
        context.left.store(Hosted::now(), Ordering::Relaxed);
        Some(index)
    }

    /// A context without a job, on an open stack.
    fn take(&self) -> Option<usize> {
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = unused.again.pop() {
            return Some(index);
        }
        let index = unused.fresh;
        if index == MOST || self.stacks.open(index).is_err() {
            return None;
        }
        unused.fresh += 1;
        Some(index)
    }

    /// Returns true if a CPU runs the task whose words are at this address; `None` if there is
    /// none.
    pub(crate) fn is_running(&self, locals: usize) -> Option<bool> {
        let index = self.stacks.index_of(locals)?;
        Some(self.all[index].on.load(Ordering::Relaxed))
    }

    /// Records that the task of the context waits for another task's work, or no longer does.
    pub(crate) fn stand_by(&self, index: usize, stands_by: bool) {
        self.all[index]
            .stands_by
            .store(stands_by, Ordering::Relaxed);
    }

    /// The time that the context was off CPUs, up to its last return.
    pub(crate) fn off(&self, index: usize) -> u64 {
        self.all[index].off.load(Ordering::Relaxed)
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        for context in &mut self.all {
            let Some(body) = context.body.get_mut() else {
                continue;
            };
            let locals = with_exposed_provenance_mut::<Locals>(*context.locals.get_mut());
            // SAFETY: a job that has not ended is a CPU's own loop, since a machine's threads hold
            // it until all tasks have ended. It is suspended for good where only its words and a
            // pin are to drop, and a pin is a number.
            unsafe {
                if !locals.is_null() {
                    drop_in_place(locals);
                }
                body.force_reset();
            }
        }
    }
}

/// The code of a context.
fn begin(index: usize, yielder: &Yielder<(), Left>, job: Job, exit: Option<Exit>) -> Ending {
    let me = &here().pool.all[index];
    me.yielder
        .store(from_ref(yielder).cast_mut(), Ordering::Relaxed);
    if exit.is_some() {
        here().back(me);
    }
    let panic = with_words(me, job).err();
    let exit = exit.expect("a CPU's own loop has no end");
    // `exit` runs with words of its own, since other tasks may end at the same time.
    let next = with_words(me, exit).expect("the scheduler knows a context to go on with");
    (next, panic)
}

/// Calls `f` with new words, which it then drops; returns the payload if `f` panicked.
fn with_words<R>(me: &Context, f: impl FnOnce() -> R) -> Result<R, Box<dyn Any + Send>> {
    let locals = Locals::ZERO;
    // Valid until they are dropped, and not used afterwards.
    me.set_locals(&locals);
    let result = catch_unwind(AssertUnwindSafe(f));
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(locals)));
    me.set_locals(null());
    result.and_then(|result| dropped.map(|()| result))
}

impl Context {
    fn set_locals(&self, locals: *const Locals) {
        let address = locals.expose_provenance();
        self.locals.store(address, Ordering::Relaxed);
        words::LOCALS.set(address);
    }

    /// Suspends the context; returns when a CPU continues with it.
    fn suspend(&self, left: Left) {
        let yielder = self.yielder.load(Ordering::Relaxed);
        // SAFETY: the running context's own, which lives as long as its stack.
        unsafe { &*yielder }.suspend(left);
    }
}

/// The crew whose contexts run on the calling thread.
fn here() -> &'static Crew {
    Crew::current().expect("contexts run on CPUs of a machine with a scheduler")
}

impl Crew {
    /// Makes the CPUs' own contexts, which run the scheduler's loop.
    pub(crate) fn boot(&self) {
        for cpu in 0..self.members.len() {
            let run: Job = Box::new(|| here().scheduler().run());
            let context = self.pool.create(run, None);
            assert_eq!(context, Some(cpu), "the first contexts are the CPUs'");
        }
    }

    /// Runs contexts on the calling thread until no task is left.
    pub(crate) fn run(&self) {
        let me = self.here();
        loop {
            let index = me.context.load(Ordering::Relaxed);
            let next = match self.resume(index) {
                CoroutineResult::Yield(Left::For(next)) => next,
                CoroutineResult::Yield(Left::Work) => return,
                CoroutineResult::Return((next, panic)) => {
                    self.end(index, panic);
                    let now = Hosted::now();
                    self.pool.all[next].ready.store(now, Ordering::Relaxed);
                    next
                }
            };
            me.context.store(next, Ordering::Relaxed);
        }
    }

    /// Runs a context until it suspends itself or ends.
    fn resume(&self, index: usize) -> CoroutineResult<Left, Ending> {
        let context = &self.pool.all[index];
        words::LOCALS.set(context.locals.load(Ordering::Relaxed));
        words::PINS.set(context.pins.load(Ordering::Relaxed));
        context.on.store(true, Ordering::Relaxed);
        // SAFETY: the context is this CPU's until it suspends itself (see the module).
        let body = unsafe { &mut *context.body.get() };
        let result = body.as_mut().expect("a context with a job").resume(());
        context.on.store(false, Ordering::Relaxed);
        context.pins.store(words::PINS.get(), Ordering::Relaxed);
        words::LOCALS.set(0);
        words::PINS.set(0);
        result
    }

    /// Frees the context: its task has ended, and its CPU has left the stack.
    fn end(&self, index: usize, panic: Option<Box<dyn Any + Send>>) {
        // SAFETY: the context is this CPU's, and no longer runs.
        unsafe { *self.pool.all[index].body.get() = None };
        if panic.is_some() {
            let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
            *first = first.take().or(panic);
        }
        let unused = &self.pool.unused;
        let mut unused = unused.lock().unwrap_or_else(PoisonError::into_inner);
        unused.again.push(index);
        drop(unused);
        self.has_ended();
    }

    /// The context that the calling CPU runs.
    fn running(&self) -> &Context {
        &self.pool.all[self.here().context.load(Ordering::Relaxed)]
    }

    /// Ends the calling CPU's thread; returns in the next thread that becomes the CPU.
    pub(crate) fn rest(&self) {
        self.running().suspend(Left::Work);
    }

    fn switch(&self, to: usize, ready: u64) {
        let me = self.running();
        self.pool.all[to].ready.store(ready, Ordering::Relaxed);
        me.left.store(Hosted::now(), Ordering::Relaxed);
        me.suspend(Left::For(to));
        self.back(me);
    }

    /// Accounts for the time that the calling context was off CPUs: blocked first, then ready.
    fn back(&self, me: &Context) {
        let now = Hosted::now();
        let left = me.left.load(Ordering::Relaxed);
        let ready = me.ready.load(Ordering::Relaxed).clamp(left, now.max(left));
        let off = me.off.load(Ordering::Relaxed) + now.saturating_sub(left);
        me.off.store(off, Ordering::Relaxed);
        if self.is_task() {
            self.here().charge(Off {
                blocked: if me.stands_by.load(Ordering::Relaxed) {
                    0
                } else {
                    ready - left
                },
                queued: now.saturating_sub(ready),
            });
        }
    }

    /// Returns true if a task runs on the calling CPU, not the CPU's own loop.
    fn is_task(&self) -> bool {
        self.here().context.load(Ordering::Relaxed) >= self.members.len()
    }
}

impl Contexts for Hosted {
    type Context = usize;

    fn create(job: Job, exit: Exit) -> Option<usize> {
        let crew = here();
        let index = crew.pool.create(job, Some(exit))?;
        crew.has_begun(1);
        Some(index)
    }

    fn context() -> usize {
        here().here().context.load(Ordering::Relaxed)
    }

    fn first_pin() -> Pin {
        Pin::first()
    }

    unsafe fn switch(to: usize, ready: u64) {
        here().switch(to, ready);
    }

    fn set_timer(time: u64) {
        here().here().set_timer(time);
    }

    fn kick(cpu: usize) {
        here().members[cpu].interrupt();
    }

    fn wait_for_interrupt(pin: Pin) {
        let crew = here();
        crew.wait_for_interrupt();
        drop(pin);
        crew.safe_point();
    }
}
