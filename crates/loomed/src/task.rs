//! Parking, a clock that counts, and task-local words.

use crate::Loomed;
use crate::cpu::assert_unpinned;
use machine::{Anchor, Clock, Locals, Tasks};
use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Names a thread of the running model: its place in [`THREADS`].
#[derive(Clone, Copy, PartialEq)]
pub struct Task(usize);

loom::lazy_static! {
    /// The threads that have asked for their name in this execution.
    static ref THREADS: Registry = Registry::default();
    /// The anchor of an execution.
    static ref ANCHOR: UnlessFailed<Anchor> = UnlessFailed(ManuallyDrop::new(Anchor::new()));
}

#[derive(Default)]
struct Registry(std::sync::Mutex<Vec<loom::thread::Thread>>);

loom::thread_local! {
    static TASK: Cell<Option<Task>> = Cell::new(None);
    static LOCALS: UnlessFailed<Locals> = UnlessFailed(ManuallyDrop::new(Locals::ZERO));
    static NOW: RefCell<u64> = RefCell::new(0);
}

/// Dropped unless the model has failed: what a lock keeps here takes steps to go, and a model that
/// has failed has none left.
struct UnlessFailed<T>(ManuallyDrop<T>);

impl<T> Deref for UnlessFailed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Drop for UnlessFailed<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: dropped here only, and not used again.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}

/// Ends the task that the calling loom thread ran.
///
/// loom drops thread-locals after the thread was joined, maybe after the statics that a task's
/// words refer to.
pub(crate) fn end() {
    LOCALS.with(|locals| {
        if let Some(at_exit) = locals.at_exit.take() {
            at_exit(locals);
        }
        locals.words.iter().for_each(|word| word.set(0));
    });
}

thread_local! {
    /// True if an `unpark` lets other tasks run first. A model runs on its test's own thread.
    static LATE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `model` so that each `unpark` lets other tasks run first.
///
/// In loom, everything a task does before an `unpark` happens before everything that the other task
/// does next, even if that task does not park. Here a task that need not park continues earlier,
/// and so without that order.
pub fn with_late_unparks(model: impl FnOnce()) {
    LATE.set(true);
    let result = catch_unwind(AssertUnwindSafe(model));
    LATE.set(false);
    result.unwrap_or_else(|panic| resume_unwind(panic));
}

impl Tasks for Loomed {
    type Task = Task;

    fn current_task() -> Task {
        TASK.with(|task| {
            task.get().unwrap_or_else(|| {
                let mut threads = THREADS.0.lock().unwrap();
                threads.push(loom::thread::current());
                task.set(Some(Task(threads.len() - 1)));
                Task(threads.len() - 1)
            })
        })
    }

    fn park() {
        assert_unpinned();
        loom::thread::park();
    }

    fn unpark(task: Task) {
        if LATE.get() {
            loom::thread::yield_now();
        }
        let thread = THREADS.0.lock().unwrap()[task.0].clone();
        thread.unpark();
    }

    fn yield_now() {
        assert_unpinned();
        loom::thread::yield_now();
    }

    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        LOCALS.with(|locals| f(locals))
    }

    fn anchor() -> &'static Anchor {
        &ANCHOR
    }
}

impl Clock for Loomed {
    fn now() -> u64 {
        NOW.with(|now| {
            *now.borrow_mut() += 1;
            *now.borrow()
        })
    }

    fn sleep_until(_: u64) {
        assert_unpinned();
        loom::thread::yield_now();
    }
}
