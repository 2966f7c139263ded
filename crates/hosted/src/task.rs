//! Parking, the clock, and task-local words: a thread's own, or a scheduler's task's.

use crate::crew::Crew;
use crate::permit::Permit;
use crate::{Hosted, words};
use core::ptr::{from_ref, with_exposed_provenance};
use machine::{Anchor, Clock, Cpus, Locals, Scheduler, TaskName, Tasks};
use std::sync::LazyLock;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Names a thread, or a scheduler's task, for unparking.
#[derive(Clone, Copy)]
pub struct Task(Named);

#[derive(Clone, Copy)]
enum Named {
    /// A permit is never freed, so waking a thread that has ended is harmless.
    Thread(&'static Permit),
    Task(TaskName),
}

impl PartialEq for Task {
    fn eq(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (Named::Thread(one), Named::Thread(other)) => core::ptr::eq(one, other),
            (Named::Task(one), Named::Task(other)) => one == other,
            _ => false,
        }
    }
}

/// Permits of threads that have ended, to be used again.
static FREE: Mutex<Vec<&'static Permit>> = Mutex::new(Vec::new());

/// The calling thread's permit; returned to [`FREE`] when the thread ends.
struct Owned(&'static Permit);

impl Owned {
    fn take() -> Self {
        let reused = FREE.lock().unwrap_or_else(|e| e.into_inner()).pop();
        Owned(reused.unwrap_or_else(|| Box::leak(Box::new(Permit::new()))))
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        FREE.lock().unwrap_or_else(|e| e.into_inner()).push(self.0);
    }
}

thread_local! {
    static PERMIT: Owned = Owned::take();
    static OWN: Words = const { Words(Locals::ZERO) };
}

/// The words of a thread that is a task; [`words::LOCALS`] leads there.
struct Words(Locals);

impl Drop for Words {
    fn drop(&mut self) {
        words::LOCALS.set(0);
    }
}

/// The scheduler whose task calls, if it is one's.
#[inline]
fn scheduler() -> Option<&'static dyn Scheduler> {
    Crew::current().map(Crew::scheduler)
}

impl Tasks for Hosted {
    type Task = Task;

    fn current_task() -> Task {
        Task(match scheduler() {
            Some(scheduler) => Named::Task(scheduler.current_task()),
            None => Named::Thread(PERMIT.with(|permit| permit.0)),
        })
    }

    fn park() {
        assert_unpinned();
        if let Some(scheduler) = scheduler() {
            return scheduler.park();
        }
        let permit = PERMIT.with(|permit| permit.0);
        while !permit.take() {
            permit.wait(None);
        }
    }

    fn unpark(task: Task) {
        match task.0 {
            Named::Thread(permit) => permit.give(),
            Named::Task(name) => {
                let scheduler = scheduler().expect("tasks are woken on CPUs of their machine");
                scheduler.unpark(name);
            }
        }
    }

    fn yield_now() {
        assert_unpinned();
        match scheduler() {
            Some(scheduler) => scheduler.yield_now(),
            None => std::thread::yield_now(),
        }
    }

    #[inline]
    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        let locals = with_exposed_provenance::<Locals>(words::LOCALS.get());
        // SAFETY: the words are the calling thread's (`own_locals`), or are on the stack of the
        // task that it runs, below everything that calls this; 0 stands there when they are gone.
        match unsafe { locals.as_ref() } {
            Some(locals) => f(locals),
            None => own_locals(f),
        }
    }

    #[inline]
    fn safe_point() {
        if let Some(crew) = Crew::current() {
            crew.safe_point();
        }
    }

    fn is_running(locals: usize) -> Option<bool> {
        Crew::current()?.is_running(locals)
    }

    fn is_wanted() -> bool {
        Crew::current().is_some_and(Crew::is_interrupted)
    }

    fn anchor() -> &'static Anchor {
        static ANCHOR: Anchor = Anchor::new();
        &ANCHOR
    }
}

/// Panics if the task is about to sleep while it holds a pin.
#[inline(always)]
#[track_caller]
fn assert_unpinned() {
    assert!(Hosted::pins() == 0, "a task sleeps while it is pinned");
}

/// Calls `f` with the words of the calling thread, which is no scheduler's task.
#[cold]
#[inline(never)]
fn own_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
    OWN.with(|own| {
        words::LOCALS.set(from_ref(&own.0).expose_provenance());
        f(&own.0)
    })
}

impl Clock for Hosted {
    fn now() -> u64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed().as_nanos() as u64
    }

    fn sleep_until(time: u64) {
        assert_unpinned();
        if let Some(scheduler) = scheduler() {
            return scheduler.sleep_until(time);
        }
        loop {
            let rest = time.saturating_sub(Self::now());
            if rest == 0 {
                return;
            }
            std::thread::sleep(Duration::from_nanos(rest));
        }
    }
}
