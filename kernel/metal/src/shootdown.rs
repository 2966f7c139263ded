//! Flushing the TLBs of other CPUs, by interrupts.
//!
//! # Protocol
//! The initiator, which has changed the tables, writes its request, counts the targets, sets its bit
//! at each (release) and interrupts it. A target takes the bits (acquire), flushes as each request
//! says, and counts itself out (release). The initiator waits for the count to be 0 (acquire), with
//! interrupts on: two CPUs that shoot at each other serve each other.
//!
//! # Idle CPUs
//! A CPU that waits for an interrupt in a context without tables has nothing of a task's in its TLB
//! and walks no table of a task. It says so in `idle`, and an initiator leaves it alone. In the one
//! order of all fences the CPU's fence after it has cleared `idle` either follows the initiator's, so
//! that its walks see the tables as the initiator left them; or it precedes it, and the initiator
//! sees `idle` cleared.

use crate::Metal;
use crate::cpu::Cpu;
use crate::{apic, mmu};
use core::sync::atomic::{AtomicBool, Ordering, fence};
use machine::{Asid, CpuSet, Cpus, Flush, SharedCell};

/// A planted bug: no other CPU is asked.
static FORGETS_OTHERS: AtomicBool = AtomicBool::new(false);

/// Plants a bug: from now on a CPU flushes its own TLB only. A test shows by it that stale translations
/// would be noticed.
pub fn forget_others() {
    FORGETS_OTHERS.store(true, Ordering::Relaxed);
}

/// A plant: shootdowns begin late.
static IS_LATE: AtomicBool = AtomicBool::new(false);
/// Rounds of a pause that is longer than what other CPUs do meanwhile.
const LATE: u32 = 5_000;

/// From now on a CPU pauses between changing the tables and asking others to flush, which a sound VM bears. A test widens by it
/// the window in which others have stale translations.
pub fn flush_late() {
    IS_LATE.store(true, Ordering::Relaxed);
}

/// See [`machine::Mmu::shootdown`].
pub(crate) fn shootdown(targets: &CpuSet, asid: Asid, what: Flush) {
    let _pin = Metal::pin();
    let me = Cpu::this();
    if IS_LATE.load(Ordering::Relaxed) {
        Metal::delay(LATE);
    }
    if targets.contains(me.index.get()) {
        mmu::flush(what);
    }
    // Pairs with the fence in `leave_idle`.
    fence(Ordering::SeqCst);
    // SAFETY: it is not read before a bit is set, or after the last acknowledgement.
    unsafe { *me.request.write() = (asid, what) };
    let others = targets.iter().filter(|&cpu| cpu != me.index.get());
    for cpu in others.map(Cpu::of) {
        if cpu.idle.load(Ordering::Relaxed) || FORGETS_OTHERS.load(Ordering::Relaxed) {
            continue;
        }
        me.unacknowledged.fetch_add(1, Ordering::Relaxed);
        let (word, bit) = (me.index.get() / 64, me.index.get() % 64);
        // Release: pairs with the acquire in `serve`.
        cpu.asked_by[word].fetch_or(1 << bit, Ordering::Release);
        apic::send(cpu.apic.get(), u32::from(apic::FLUSH));
    }
    // Acquire: pairs with the release in `serve`.
    Metal::spin_until(|| me.unacknowledged.load(Ordering::Acquire) == 0);
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
            let (_asid, what) = unsafe { *initiator.request.read() };
            mmu::flush(what);
            // Release: pairs with the acquire in `shootdown`.
            initiator.unacknowledged.fetch_sub(1, Ordering::Release);
        }
    }
}

/// The calling CPU is about to wait, with interrupts off.
pub(crate) fn enter_idle(cpu: &Cpu) {
    // Release: a CPU that sees it leaves this one alone, as it has nothing cached.
    cpu.idle.store(cpu.root.get().is_none(), Ordering::Release);
}

/// It waits no longer; interrupts are off.
pub(crate) fn leave_idle(cpu: &Cpu) {
    cpu.idle.store(false, Ordering::Relaxed);
    // Pairs with the fence in `shootdown`.
    fence(Ordering::SeqCst);
}
