//! The policy's words in a thread (`struct td_sched`, and the priorities in `struct thread`).

use super::Ule;
use super::interact::{History, Usage, priority};
use super::runq::Place;
use crate::queue::{Linked, Links};
use machine::{Atomic, Contexts, Ordering};

/// Guarded by the lock of the CPU that runs the task or has it queued (`td_lock`). A sleeping
/// task's words belong to its waker, a new one's to its maker.
pub struct Entry<M: Contexts> {
    /// Its links in a run queue.
    links: Links<M, Ule<M>>,
    /// Its place in the run queue.
    place: M::AtomicU32,
    /// `ts_cpu`: the CPU where it runs or is queued, or ran last.
    cpu: M::AtomicU32,
    /// `td_priority`: better than `td_user_pri` in the kernel.
    priority: M::AtomicU32,
    /// `td_user_pri`.
    user_priority: M::AtomicU32,
    /// `ts_slptime`, `ts_runtime`.
    history: [M::AtomicU32; 2],
    /// `ts_ticks`, `ts_ftick`, `ts_ltick`.
    usage: [M::AtomicU32; 3],
    /// `ts_slice`: how much of its slice it has used, in ticks of the statistics clock.
    slice: M::AtomicU32,
    /// `ts_rltick`: the tick when it last left a CPU.
    left_at: M::AtomicU32,
    /// `td_slptick`: the tick when it went to sleep.
    slept_at: M::AtomicU32,
    /// 1 if it was preempted, and goes on in the list where it was; written when it leaves, read
    /// when it is put back.
    preempted: M::AtomicU32,
}

fn get<M: Contexts>(word: &M::AtomicU32) -> u32 {
    word.load(Ordering::Relaxed)
}

fn set<M: Contexts>(word: &M::AtomicU32, value: u32) {
    word.store(value, Ordering::Relaxed);
}

impl<M: Contexts> Entry<M> {
    pub(super) fn new() -> Self {
        let word = || M::AtomicU32::new(0);
        Entry {
            links: Links::new(),
            place: word(),
            cpu: word(),
            priority: word(),
            user_priority: word(),
            history: [word(), word()],
            usage: [word(), word(), word()],
            slice: word(),
            left_at: word(),
            slept_at: word(),
            preempted: word(),
        }
    }

    /// Initialises the words of a new task.
    pub(super) fn begin(&self, cpu: usize, slice: u32, history: History, usage: Usage, tick: u32) {
        self.set_cpu(cpu);
        set::<M>(&self.slice, slice);
        self.set_history(history);
        self.set_usage(usage);
        set::<M>(&self.left_at, tick);
        set::<M>(&self.preempted, 0);
        self.recompute();
        self.to_user();
    }

    pub(super) fn cpu(&self) -> usize {
        get::<M>(&self.cpu) as usize
    }

    pub(super) fn set_cpu(&self, cpu: usize) {
        set::<M>(&self.cpu, cpu as u32);
    }

    pub(super) fn place(&self) -> Place {
        Place(get::<M>(&self.place))
    }

    pub(super) fn set_place(&self, place: Place) {
        set::<M>(&self.place, place.0);
    }

    pub(super) fn priority(&self) -> u32 {
        get::<M>(&self.priority)
    }

    /// Raises the priority to this one at least.
    pub(super) fn lift(&self, priority: u32) {
        set::<M>(&self.priority, self.priority().min(priority));
    }

    /// Sets the priority for the return to user mode (`sched_userret`).
    pub(super) fn to_user(&self) {
        set::<M>(&self.priority, get::<M>(&self.user_priority));
    }

    /// Recomputes the priority in user mode.
    pub(super) fn recompute(&self) {
        let priority = priority(self.history(), self.usage());
        set::<M>(&self.user_priority, priority);
    }

    pub(super) fn history(&self) -> History {
        let [slept, ran] = &self.history;
        History {
            slept: get::<M>(slept),
            ran: get::<M>(ran),
        }
    }

    pub(super) fn set_history(&self, history: History) {
        set::<M>(&self.history[0], history.slept);
        set::<M>(&self.history[1], history.ran);
    }

    pub(super) fn usage(&self) -> Usage {
        let [ran, first, last] = &self.usage;
        Usage {
            ran: get::<M>(ran),
            first: get::<M>(first),
            last: get::<M>(last),
        }
    }

    pub(super) fn set_usage(&self, usage: Usage) {
        set::<M>(&self.usage[0], usage.ran);
        set::<M>(&self.usage[1], usage.first);
        set::<M>(&self.usage[2], usage.last);
    }

    /// Counts the time until `tick`; `ran` says if the task ran in it.
    pub(super) fn count(&self, tick: u32, ran: bool) {
        self.set_usage(self.usage().counted(tick, ran));
    }

    pub(super) fn slice(&self) -> u32 {
        get::<M>(&self.slice)
    }

    pub(super) fn set_slice(&self, slice: u32) {
        set::<M>(&self.slice, slice);
    }

    pub(super) fn left_at(&self) -> u32 {
        get::<M>(&self.left_at)
    }

    pub(super) fn set_left_at(&self, tick: u32) {
        set::<M>(&self.left_at, tick);
    }

    pub(super) fn slept_at(&self) -> u32 {
        get::<M>(&self.slept_at)
    }

    pub(super) fn set_slept_at(&self, tick: u32) {
        set::<M>(&self.slept_at, tick);
    }

    pub(super) fn is_preempted(&self) -> bool {
        get::<M>(&self.preempted) != 0
    }

    pub(super) fn set_preempted(&self, preempted: bool) {
        set::<M>(&self.preempted, u32::from(preempted));
    }
}

impl<M: Contexts> Linked<M, Ule<M>> for Entry<M> {
    fn links(&self) -> &Links<M, Ule<M>> {
        &self.links
    }
}
