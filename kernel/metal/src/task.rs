//! Tasks and time, with a scheduler's tasks, or one job for each CPU before there is a scheduler.

use crate::cpu::Cpu;
use crate::execute::{scheduler, take_job};
use crate::{Metal, clock, context};
use core::sync::atomic::Ordering;
use machine::{Anchor, Clock, Contexts, Cpus, Locals, TaskName, Tasks};

/// Bits of a job's name that number its CPU.
const CPU_BITS: u32 = 16;

/// Panics if the task is about to sleep while it holds a pin.
#[track_caller]
fn assert_unpinned() {
    assert!(Metal::pins() == 0, "a task sleeps while it is pinned");
}

impl Tasks for Metal {
    type Task = TaskName;

    fn current_task() -> TaskName {
        scheduler().map_or_else(
            || {
                let cpu = Cpu::this();
                let serial = cpu.serial.load(Ordering::Relaxed);
                TaskName(serial << CPU_BITS | cpu.index.get() as u64)
            },
            |scheduler| scheduler.current_task(),
        )
    }

    fn park() {
        assert_unpinned();
        if let Some(scheduler) = scheduler() {
            return scheduler.park();
        }
        let cpu = Cpu::this();
        // Acquire: pairs with the release in `unpark`.
        Metal::spin_until(|| cpu.permit.swap(0, Ordering::Acquire) == Self::current_task().0);
    }

    fn unpark(task: TaskName) {
        if let Some(scheduler) = scheduler() {
            return scheduler.unpark(task);
        }
        let cpu = Cpu::of((task.0 & ((1 << CPU_BITS) - 1)) as usize);
        // Release: pairs with the acquire in `park`. A permit for a job that has ended is one that
        // no later job takes.
        cpu.permit.store(task.0, Ordering::Release);
    }

    fn yield_now() {
        assert_unpinned();
        if let Some(scheduler) = scheduler() {
            scheduler.yield_now();
        }
    }

    #[inline]
    fn with_locals<R>(f: impl FnOnce(&Locals) -> R) -> R {
        // SAFETY: the calling context's own words, which stay while its job runs.
        f(unsafe { &*Metal::context().locals() })
    }

    fn safe_point() {
        assert_unpinned();
        if let Some(scheduler) = scheduler()
            && Cpu::this().pending.swap(false, Ordering::Relaxed)
        {
            if let Some(job) = take_job(Cpu::this()) {
                scheduler.start(job);
            }
            if let Some(task) = clock::due(Cpu::this()) {
                scheduler.unpark(task);
            }
            scheduler.interrupt();
        }
    }

    fn is_running(locals: usize) -> Option<bool> {
        scheduler().map(|_| context::runs(locals))
    }

    fn is_wanted() -> bool {
        Cpu::this().pending.load(Ordering::Relaxed)
    }

    fn anchor() -> &'static Anchor {
        static ANCHOR: Anchor = Anchor::new();
        &ANCHOR
    }
}

impl Clock for Metal {
    fn now() -> u64 {
        clock::now()
    }

    fn sleep_until(time: u64) {
        assert_unpinned();
        match scheduler() {
            Some(scheduler) if Self::now() < time => scheduler.sleep_until(time),
            Some(_) => {}
            None => Metal::spin_until(|| Self::now() >= time),
        }
    }
}
