//! Tasks: parking, task-local words, anchored values, time.

use super::two;
use crate::{Atomic, Execute, Locals, Ordering, SharedCell};
use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::AtomicUsize;

/// A task that parks until a condition holds wakes up when another makes it hold and unparks it, at
/// whatever moment.
pub fn parking<M: Execute>(m: &M) {
    struct Shared<M: Execute> {
        waiter: M::Cell<Option<M::Task>>,
        published: M::AtomicU32,
        condition: M::AtomicU32,
    }
    let shared = Arc::new(Shared::<M> {
        waiter: M::Cell::new(None),
        published: M::AtomicU32::new(0),
        condition: M::AtomicU32::new(0),
    });
    let wait = |shared: &Shared<M>| {
        // SAFETY: the other CPU reads after it has seen `published`.
        unsafe { *shared.waiter.write() = Some(M::current_task()) };
        shared.published.store(1, Ordering::Release);
        while shared.condition.load(Ordering::Acquire) == 0 {
            M::park();
        }
    };
    let wake = |shared: &Shared<M>| {
        M::spin_until(|| shared.published.load(Ordering::Acquire) == 1);
        // SAFETY: the waiter wrote it before `published` and does not write it again.
        let waiter = unsafe { *shared.waiter.read() }.expect("published");
        assert!(waiter != M::current_task(), "two tasks, one name");
        shared.condition.store(1, Ordering::Release);
        M::unpark(waiter);
    };
    two(m, &shared, wait, wake);
}

/// A permit given before the task parks is not lost; several permits count as one.
pub fn permits<M: Execute>(m: &M) {
    two(
        m,
        &Arc::new(()),
        |()| {
            let me = M::current_task();
            assert!(me == M::current_task(), "a task has one name");
            M::unpark(me);
            M::unpark(me);
            M::park();
        },
        |()| {
            let me = M::current_task();
            M::unpark(me);
            M::park();
        },
    );
}

/// A task's words are 0 at first, keep what the task writes, belong to it alone, and are passed to
/// `at_exit` when it ends.
pub fn locals<M: Execute>(m: &M) {
    fn leave(locals: &Locals) {
        let sum = locals.words[0].get() as *const AtomicUsize;
        // SAFETY: the word holds a reference that `own` counted for this call.
        let sum = unsafe { Arc::from_raw(sum) };
        sum.fetch_add(locals.words[1].get(), Ordering::Relaxed);
    }
    fn own<M: Execute>(sum: &Arc<AtomicUsize>, me: usize) {
        M::with_locals(|locals| {
            assert!(locals.words.iter().all(|w| w.get() == 0), "not 0 at first");
            locals.words[0].set(Arc::into_raw(sum.clone()) as usize);
            locals.words[1].set(me);
            locals.at_exit.set(Some(leave));
        });
        M::yield_now();
        M::with_locals(|locals| assert_eq!(locals.words[1].get(), me, "another task's word"));
    }
    // CPU 0's task may outlive the job; it leaves nothing behind.
    let sum = Arc::new(AtomicUsize::new(0));
    two(
        m,
        &Arc::new(sum.clone()),
        |_| {
            M::with_locals(|locals| locals.words[1].set(9));
            M::yield_now();
            M::with_locals(|locals| assert_eq!(locals.words[1].replace(0), 9));
        },
        |sum| own::<M>(sum, 7),
    );
    assert_eq!(
        sum.load(Ordering::Relaxed),
        7,
        "at_exit once, with the words"
    );
}

/// All tasks find one anchored value of a type, and types do not mix.
pub fn anchor<M: Execute>(m: &M) {
    struct Here(u32);
    struct There(u32);
    fn find<M: Execute>() -> [usize; 2] {
        let here = M::anchor().get_or_init(|| Here(1));
        let there = M::anchor().get_or_init(|| There(2));
        assert_eq!((here.0, there.0), (1, 2), "anchored values");
        [
            core::ptr::from_ref(here).addr(),
            core::ptr::from_ref(there).addr(),
        ]
    }
    let found: Arc<[AtomicUsize; 4]> = Arc::default();
    let note = |at: usize| {
        move |found: &[AtomicUsize; 4]| {
            for (to, address) in found[at..].iter().zip(find::<M>()) {
                to.store(address, Ordering::Relaxed);
            }
        }
    };
    two(m, &found, note(0), note(2));
    let found: Vec<_> = found.iter().map(|f| f.load(Ordering::Relaxed)).collect();
    assert_eq!(found[..2], found[2..], "two anchors, or a value made twice");
}

/// Time does not go back, and does not stand still.
pub fn clock<M: Execute>(m: &M) {
    let watch = |(): &()| {
        let mut last = M::now();
        for _ in 0..100 {
            let now = M::now();
            assert!(now >= last, "time went back from {last} to {now}");
            last = now;
        }
        let passes = (0..1_000_000).any(|_| {
            M::delay(100);
            M::now() > last
        });
        assert!(passes, "time stands still at {last}");
    };
    two(m, &Arc::new(()), watch, watch);
}
