//! Flushing the TLBs of other CPUs, by interrupts.
//!
//! # Protocol
//! The initiator, which has changed the tables, writes its request, counts the targets, sets its
//! bit at each (release) and interrupts it. A target takes the bits (acquire), flushes as each
//! request says, and counts itself out (release). The initiator waits for the count to be 0
//! (acquire), with interrupts on: two CPUs with shootdowns for each other serve each other.
//!
//! # CPUs without tables
//! A CPU that translates for no task, because it is idle or runs a task of the kernel's, walks no
//! table of a task, and uses none of the tasks' entries that its TLB has. It sets its flag
//! `absent`. An initiator does not interrupt an absent CPU, but sets the flag `missed`, upon which
//! the CPU drops all entries when it comes back. In the one order of all fences, the CPU's fence
//! after it has cleared `absent` either follows the initiator's: then the CPU sees `missed`, and
//! its walks see the tables as the initiator left them. Or it precedes the initiator's: then the
//! initiator, which reads again, sees `absent` cleared. The VM has the same protocol for CPUs that
//! have left a space; here all spaces count as one.

use crate::Metal;
use crate::cpu::Cpu;
use crate::{apic, mmu};
use core::sync::atomic::{AtomicBool, Ordering, fence};
use machine::{Asid, CpuSet, Cpus, Flush, SharedCell};

/// A planted bug: shootdowns do not reach other CPUs.
static FORGETS_OTHERS: AtomicBool = AtomicBool::new(false);

/// Plants a bug: from now on a CPU flushes only its own TLB. A test shows with it that stale
/// translations would be noticed.
pub fn forget_others() {
    FORGETS_OTHERS.store(true, Ordering::Relaxed);
}

/// A planted delay: shootdowns begin late.
static IS_LATE: AtomicBool = AtomicBool::new(false);
/// Rounds of a pause that is longer than what other CPUs do meanwhile.
const LATE: u32 = 5_000;

/// Makes CPUs pause between changing the tables and asking others to flush, which a sound VM
/// tolerates. A test widens with it the window in which others have stale translations.
pub fn flush_late() {
    IS_LATE.store(true, Ordering::Relaxed);
}

/// Flushes entries on the target CPUs ([`machine::Mmu::shootdown`]).
pub(crate) fn shootdown(targets: &CpuSet, asid: Asid, what: Flush) {
    let _pin = Metal::pin();
    let me = Cpu::this();
    if IS_LATE.load(Ordering::Relaxed) {
        Metal::delay(LATE);
    }
    if targets.contains(me.index.get()) {
        mmu::flush(asid, what);
    }
    let others = || targets.iter().filter(|&cpu| cpu != me.index.get());
    let left_alone = leave_alone(others());
    // SAFETY: it is not read before a bit is set, or after the last acknowledgement.
    unsafe { *me.request.write() = (asid, what) };
    for cpu in others().filter(|&cpu| !left_alone.contains(cpu)) {
        if FORGETS_OTHERS.load(Ordering::Relaxed) {
            continue;
        }
        let cpu = Cpu::of(cpu);
        me.unacknowledged.fetch_add(1, Ordering::Relaxed);
        let (word, bit) = (me.index.get() / 64, me.index.get() % 64);
        // Release: pairs with the acquire in `serve`.
        cpu.asked_by[word].fetch_or(1 << bit, Ordering::Release);
        apic::send(cpu.apic.get(), u32::from(apic::FLUSH));
    }
    // Acquire: pairs with the release in `serve`.
    Metal::spin_until(|| me.unacknowledged.load(Ordering::Acquire) == 0);
}

/// Marks the absent ones of these CPUs as having missed a flush; returns those that are still
/// absent afterwards.
fn leave_alone(cpus: impl Iterator<Item = usize>) -> CpuSet {
    // Acquire: pairs with `go_away`; the CPU's accesses for tasks are performed.
    let is_absent = |&cpu: &usize| Cpu::of(cpu).absent.load(Ordering::Acquire);
    let absent: CpuSet = cpus.filter(is_absent).collect();
    absent
        .iter()
        .for_each(|cpu| Cpu::of(cpu).missed.store(true, Ordering::Relaxed));
    // Pairs with the fence in `come_back`.
    fence(Ordering::SeqCst);
    absent.iter().filter(is_absent).collect()
}

/// Serves all requests to the calling CPU, whose interrupts are off.
pub(crate) fn serve() {
    for (index, word) in Cpu::this().asked_by.iter().enumerate() {
        // Acquire: pairs with the release in `shootdown`.
        let mut bits = word.swap(0, Ordering::Acquire);
        while bits != 0 {
            let initiator = Cpu::of(64 * index + bits.trailing_zeros() as usize);
            bits &= bits - 1;
            // SAFETY: the initiator keeps it until it is acknowledged.
            let (asid, what) = unsafe { *initiator.request.read() };
            mmu::flush(asid, what);
            // Release: pairs with the acquire in `shootdown`.
            initiator.unacknowledged.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Marks the calling CPU, `cpu`, which no longer has tables, as absent.
pub(crate) fn go_away(cpu: &Cpu) {
    // Release: pairs with the acquire in `leave_alone`.
    cpu.absent.store(true, Ordering::Release);
}

/// Marks the calling CPU, `cpu`, as no longer absent: it is about to translate for a task.
pub(crate) fn come_back(cpu: &Cpu) {
    cpu.absent.store(false, Ordering::Relaxed);
    // Pairs with the fence in `leave_alone`.
    fence(Ordering::SeqCst);
    if cpu.missed.load(Ordering::Relaxed) {
        cpu.missed.store(false, Ordering::Relaxed);
        mmu::forget_all();
    }
}
