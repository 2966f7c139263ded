//! CPUs: where tasks run, and how they wait.

use super::two;
use crate::{Atomic, CpuId, CpuSet, Execute, Job, MAX_CPUS, Ordering, Pinned, Topology};
use alloc::{boxed::Box, sync::Arc, vec::Vec};

/// Each job runs on the CPU of its number, pins nest, and each CPU's id belongs to this machine.
pub fn cpus<M: Execute + Topology>(m: &M) {
    let range = m.cpus();
    assert!(
        range.index_of(CpuId::NONE) >= range.len(),
        "a CPU without an owner"
    );
    assert!(range.index_of(M::pin().cpu()) >= range.len(), "no CPU yet");
    let count = range.len().min(2);
    let here = move |index| {
        let outer = M::pin();
        let inner = M::pin();
        assert_eq!(outer.cpu(), range.cpu(index), "a job on another CPU");
        assert_eq!(inner.cpu(), outer.cpu(), "a pinned task moved");
        // 0 where pins are not counted.
        assert!(
            matches!(M::pins(), 0 | 2),
            "two pins, {} counted",
            M::pins()
        );
        drop(inner);
        drop(outer);
        assert_eq!(M::pins(), 0, "pins left");
        M::yield_now();
        assert_eq!(M::pin().cpu(), range.cpu(index), "a job on another CPU");
    };
    let jobs = (0..count).map(|i| Box::new(move || here(i)) as Job);
    m.execute(jobs.collect::<Vec<_>>());
    // The CPUs are free again.
    m.execute(Vec::from([Box::new(move || here(0)) as Job]));
    [range.len(), 65, MAX_CPUS].into_iter().for_each(sets);
}

fn sets(cpus: usize) {
    let all: CpuSet = (0..cpus).collect();
    assert!(all.iter().eq(0..cpus), "a set of all CPUs");
    for one in [0, cpus - 1] {
        let mut others = all;
        others.remove(one);
        assert!(
            !others.contains(one) && others.iter().eq((0..cpus).filter(|&cpu| cpu != one)),
            "a set without CPU {one}"
        );
        let mut alone = CpuSet::EMPTY;
        alone.insert(one);
        assert!(
            alone.contains(one) && alone.len() == 1 && !alone.is_empty(),
            "a set of CPU {one}"
        );
    }
}

/// A spinning CPU sees the change it waits for; its spinning does not prevent the change.
pub fn spinning<M: Execute>(m: &M) {
    let turn = Arc::new(M::AtomicU32::new(0));
    let pass = |turn: &M::AtomicU32, from: u32| {
        M::spin_until(|| turn.load(Ordering::Acquire) == from);
        M::delay(1);
        turn.store(from + 1, Ordering::Release);
    };
    let zero = move |turn: &M::AtomicU32| {
        pass(turn, 0);
        pass(turn, 2);
    };
    two(m, &turn, zero, move |turn| pass(turn, 1));
    assert_eq!(turn.load(Ordering::Relaxed), 3, "turns taken");
}
