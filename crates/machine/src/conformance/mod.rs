//! Checks that a machine keeps the contract.
//!
//! Each function checks one part and panics where it is broken. The functions are generic and know
//! nothing of the machine but its traits; they assert what holds on every schedule, so a failure is
//! never bad luck. The machine should be fresh or idle and, but for [`single`], have at least two
//! CPUs. The checks of memory and translation use the first [`FRAMES`] frames that the machine
//! hands over, those of large pages 512 more; nothing else may use these, and a check panics if a
//! VM has the machine's memory ([`crate::Memory::owned`]).
//!
//! The checks of races take a number of rounds: a real machine needs many to run into the
//! interesting schedules, a checker that explores them all needs one.
//!
//! | function | checks |
//! |---|---|
//! | [`atomics`], [`cells`] | values, atomicity of read-modify-writes |
//! | [`message_passing`], [`store_buffer`] | release and acquire; publish and fence, light and heavy |
//! | [`cpus`], [`spinning`] | where tasks run; waiting |
//! | [`parking`], [`permits`], [`locals`], [`anchor`], [`clock`] | tasks |
//! | [`outnumber`], [`pins`], [`wake_ups`] | contexts and interrupts, with [`Smallest`] as the scheduler |
//! | [`usable`], [`memory`] | frames |
//! | [`translation`], [`execution`], [`accessed_dirty`], [`flushes`], [`asids`] | one CPU's translation |
//! | [`kernel_entries`] | the kernel's part of all spaces |
//! | [`harvest`] | the walker against a kernel that clears entries |
//! | [`shootdown`], [`stale_stores`], [`mutual_shootdown`], [`many_requests`] | flushing other CPUs |
//! | [`pager`], [`truncation`] | a store of pages, which is not part of a machine |
//! | [`large_pages`], [`large_flushes`], [`large_shootdown`], [`large_changes`], [`large_harvest`] | pages of 2 MiB |
//! | [`exact_tlb`], [`exact_large_tlb`] | beyond the contract: the TLB keeps every translation until it is flushed |

mod atomics;
mod contexts;
mod cpus;
mod large;
mod litmus;
mod memory;
mod mmu;
mod owned;
mod pager;
mod shootdown;
mod tables;
mod tasks;

#[cfg(test)]
pub(crate) use atomics::pair;
pub use atomics::{atomics, cells};
pub use contexts::{Smallest, outnumber, pins, wake_ups};
pub use cpus::{cpus, spinning};
pub use large::{
    exact_large_tlb, large_changes, large_flushes, large_harvest, large_pages, large_shootdown,
};
pub use litmus::{asymmetric_store_buffer, message_passing, store_buffer};
pub use memory::{memory, usable};
pub use mmu::{
    accessed_dirty, asids, exact_tlb, execution, flushes, harvest, kernel_entries, translation,
};
pub use pager::{pager, truncation};
pub use shootdown::{many_requests, mutual_shootdown, shootdown, stale_stores};
pub use tables::FRAMES;
pub use tasks::{anchor, clock, locals, parking, permits};

use crate::{Atomic, AtomicInt, Execute, Job, Machine, Ordering, Platform, Topology};
use alloc::{boxed::Box, sync::Arc, vec::Vec};
use owned::Owned;

/// Rounds of each race in [`all`].
const ROUNDS: usize = 300;
/// Stores by which a target in [`all`] hits a page that is being unmapped.
const STORES: u64 = 1_000;

/// Runs `job` as each of `count` tasks, which it tells apart by their index, to their ends.
pub fn alike<M: Execute>(m: &M, count: usize, job: impl Fn(usize) + Send + Sync + 'static) {
    let job = Arc::new(job);
    let task = |index| -> Job {
        let job = job.clone();
        Box::new(move || job(index))
    };
    m.execute((0..count).map(task).collect());
}

/// Every check that a real machine must pass, the races many times.
pub fn all<M: Execute + Platform + Clone>(m: &M) {
    without_memory(m);
    single(m);
    harvest(m, ROUNDS);
    shootdown(m);
    stale_stores(m, ROUNDS, STORES);
    mutual_shootdown(m, ROUNDS);
    many_requests(m);
    large_shootdown(m);
    large_harvest(m, ROUNDS);
}

/// The checks of [`all`] that need no memory: what locks and epochs rely on.
pub fn without_memory<M: Execute + Topology>(m: &M) {
    cells(m);
    cpus(m);
    atomics(m);
    message_passing(m, ROUNDS);
    store_buffer(m, ROUNDS);
    spinning(m);
    parking(m);
    permits(m);
    locals(m);
    anchor(m);
    clock(m);
}

/// The checks of [`all`] that need only one CPU.
pub fn single<M: Execute + Platform + Clone>(m: &M) {
    cells(m);
    cpus(m);
    usable(m);
    memory(m);
    translation(m);
    execution(m);
    accessed_dirty(m);
    flushes(m);
    asids(m);
    kernel_entries(m);
    large_pages(m);
    large_flushes(m);
    large_changes(m);
}

/// Runs `job` on CPU 0 with a handle of the machine, whose memory is the suite's meanwhile.
fn alone<M: Execute + Platform + Clone>(m: &M, job: impl FnOnce(&Owned<M>) + Send + 'static) {
    let machine = Owned::new(m);
    m.execute(Vec::from([Box::new(move || job(&machine)) as Job]));
}

/// Runs `zero` on CPU 0 and `one` on CPU 1 with shared state.
fn two<M: Execute, S: Send + Sync + 'static>(
    m: &M,
    shared: &Arc<S>,
    zero: impl FnOnce(&S) + Send + 'static,
    one: impl FnOnce(&S) + Send + 'static,
) {
    let (for_zero, for_one) = (shared.clone(), shared.clone());
    m.execute(Vec::from([
        Box::new(move || zero(&for_zero)) as Job,
        Box::new(move || one(&for_one)) as Job,
    ]));
}

/// A barrier for two CPUs that counts arrivals.
struct Meeting<M: Machine> {
    arrived: M::AtomicUsize,
    /// 1 once either CPU has ended or failed.
    left: M::AtomicU32,
}

/// Takes part in a [`Meeting`]; a CPU that waits for one that has left fails too.
struct Attendance<'a, M: Machine>(&'a Meeting<M>);

impl<M: Machine> Meeting<M> {
    fn new() -> Self {
        Meeting {
            arrived: M::AtomicUsize::new(0),
            left: M::AtomicU32::new(0),
        }
    }

    /// Joins the meeting until the result is dropped.
    fn attend(&self) -> Attendance<'_, M> {
        Attendance(self)
    }
}

impl<M: Machine> Attendance<'_, M> {
    /// Waits until both CPUs have arrived as often as the caller.
    fn meet(&self) {
        let Meeting { arrived, left } = self.0;
        // Release and acquire: each sees what the other did before it arrived.
        let both = (arrived.fetch_add(1, Ordering::AcqRel) + 1).next_multiple_of(2);
        let all_here = || arrived.load(Ordering::Acquire) >= both;
        M::spin_until(|| all_here() || left.load(Ordering::Acquire) == 1);
        assert!(all_here(), "the other CPU has failed");
    }
}

impl<M: Machine> Drop for Attendance<'_, M> {
    fn drop(&mut self) {
        // Release: a CPU that sees the flag sees all earlier arrivals.
        self.0.left.store(1, Ordering::Release);
    }
}

/// Gives another CPU some time to make the condition true.
fn linger<M: Machine>(condition: impl Fn() -> bool) {
    for round in 0..1_000 {
        if condition() {
            break;
        }
        M::relax(round);
    }
}
