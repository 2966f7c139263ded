//! Parking, a clock that counts, and task-local words.

use crate::Checked;
use machine::{Anchor, Clock, Locals, Tasks};
use std::cell::{Cell, RefCell};

/// Names a thread of the running model: its place in [`THREADS`].
#[derive(Clone, Copy, PartialEq)]
pub struct Task(usize);

loom::lazy_static! {
    /// The threads that have asked for their name, in this execution.
    static ref THREADS: Registry = Registry::default();
    /// One an execution.
    static ref ANCHOR: Anchor = Anchor::new();
}

#[derive(Default)]
struct Registry(std::sync::Mutex<Vec<loom::thread::Thread>>);

loom::thread_local! {
    static TASK: Cell<Option<Task>> = Cell::new(None);
    static LOCALS: Locals = Locals::ZERO;
    static NOW: RefCell<u64> = RefCell::new(0);
}

/// Ends the task that the calling loom thread ran.
///
/// loom drops thread-locals after the thread was joined, maybe after the statics
/// that a task's words refer to.
pub(crate) fn end() {
    LOCALS.with(|locals| {
        if let Some(at_exit) = locals.at_exit.take() {
            at_exit(locals);
        }
        locals.words.iter().for_each(|word| word.set(0));
    });
}

impl Tasks for Checked {
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
        loom::thread::park();
    }

    fn unpark(task: Task) {
        let thread = THREADS.0.lock().unwrap()[task.0].clone();
        thread.unpark();
    }

    fn yield_now() {
        loom::thread::yield_now();
    }

    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        LOCALS.with(f)
    }

    fn anchor() -> &'static Anchor {
        &ANCHOR
    }
}

impl Clock for Checked {
    fn now() -> u64 {
        NOW.with(|now| {
            *now.borrow_mut() += 1;
            *now.borrow()
        })
    }

    fn sleep_until(_: u64) {
        loom::thread::yield_now();
    }
}
