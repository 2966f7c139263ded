//! Accesses by the kernel to a task's memory.

use crate::Metal;
use crate::cpu::Cpu;
use crate::start::{SMAP, has};
use core::arch::asm;
use core::sync::atomic::{AtomicU8, Ordering};
use machine::{Access, Memory, PageFault, pte};

unsafe extern "C" {
    fn try_load(address: usize, value: *mut u64) -> usize;
    fn try_store(address: usize, value: u64) -> usize;
    fn try_exchange(address: usize, expected: u32, new: u32, found: *mut u32) -> usize;
    fn try_copy(from: usize, to: usize, bytes: usize) -> usize;
}

/// Copies from the active space. The bytes before a fault are copied.
pub fn copy_from_user(from: usize, to: &mut [u8]) -> Result<(), PageFault> {
    within(from, to.len(), Access::Read)?;
    // SAFETY: the slice is the caller's; the other side is the task's, or faults.
    let rest = allowed(|| unsafe { try_copy(from, to.as_mut_ptr().addr(), to.len()) });
    outcome(rest)
}

/// Copies to the active space. The bytes before a fault are copied.
pub fn copy_to_user(from: &[u8], to: usize) -> Result<(), PageFault> {
    within(to, from.len(), Access::Write)?;
    // SAFETY: the slice is only read; the other side is the task's, or faults.
    let rest = allowed(|| unsafe { try_copy(from.as_ptr().addr(), to, from.len()) });
    outcome(rest)
}

/// Replaces the aligned word at `address` in the active space by `new` if it is `expected`; returns
/// the word that was there. Sequentially consistent, also with the task's own accesses.
pub fn exchange_user(address: usize, expected: u32, new: u32) -> Result<u32, PageFault> {
    within(address, 4, Access::Write)?;
    let mut found = 0;
    // SAFETY: a word of the task's, or a fault.
    let failed = allowed(|| unsafe { try_exchange(address, expected, new, &mut found) });
    outcome(failed).map(|()| found)
}

/// Reads a word as a task would.
///
/// # Safety
/// As for [`machine::Mmu::load`].
pub(crate) unsafe fn load(address: usize, access: Access) -> Result<u64, PageFault> {
    within(address, 8, access)?;
    // SAFETY: so says the caller.
    unsafe { check(address, access) }?;
    let mut value = 0;
    // SAFETY: a word of the task's, or a fault.
    let failed = allowed(|| unsafe { try_load(address, &mut value) });
    // An instruction is read as data here; `check` has checked the rights.
    outcome(failed)
        .map_err(|fault| PageFault { access, ..fault })
        .map(|()| value)
}

/// Writes a word as a task would.
///
/// # Safety
/// As for [`machine::Mmu::store`].
pub(crate) unsafe fn store(address: usize, value: u64) -> Result<(), PageFault> {
    within(address, 8, Access::Write)?;
    // SAFETY: so says the caller.
    unsafe { check(address, Access::Write) }?;
    // SAFETY: a word of the task's, or a fault.
    outcome(allowed(|| unsafe { try_store(address, value) }))
}

/// Fails unless the bytes lie below the kernel's part.
fn within(address: usize, bytes: usize, access: Access) -> Result<(), PageFault> {
    let end = address.checked_add(bytes);
    let fault = PageFault {
        // The first address in the kernel's part: those below may be mapped, and a task would retry
        // forever.
        address: address.max(pte::USER_END),
        access,
        present: false,
    };
    end.filter(|&end| end <= pte::USER_END)
        .map(drop)
        .ok_or(fault)
}

/// Makes the checks that the processor does not make for the kernel: that the entries on the way
/// are a task's, and allow execution. The tables may change meanwhile, as they may between any
/// access and the next.
///
/// # Safety
/// As for [`machine::Mmu::load`].
unsafe fn check(address: usize, access: Access) -> Result<(), PageFault> {
    let fault = |present| {
        Err(PageFault {
            address,
            access,
            present,
        })
    };
    let Some((mut table, _)) = Cpu::this().tables.get() else {
        return fault(false);
    };
    let (mut lacks, mut level) = (false, pte::LEVELS);
    loop {
        level -= 1;
        // SAFETY: the tables by which this CPU translates, so says the caller.
        let word = unsafe { Metal.word(table, pte::index(address, level)) };
        let entry = word.load(Ordering::Acquire);
        if entry & pte::PRESENT == 0 {
            return Ok(());
        }
        lacks |= entry & pte::USER == 0;
        lacks |= access == Access::Execute && entry & pte::NO_EXECUTE != 0;
        if level == 0 || entry & pte::HUGE != 0 {
            break;
        }
        table = pte::frame(entry);
    }
    if lacks { fault(true) } else { Ok(()) }
}

/// The result of an access, which may be a fault.
fn outcome(rest: usize) -> Result<(), PageFault> {
    match rest {
        0 => Ok(()),
        _ => Err(Cpu::this()
            .fault
            .get()
            .expect("the handler has noted the fault")),
    }
}

/// If the processor has SMAP, and needs to be told of accesses: 0 unknown, 1 no, 2 yes.
static SMAP_STATE: AtomicU8 = AtomicU8::new(0);

fn has_smap() -> bool {
    match SMAP_STATE.load(Ordering::Relaxed) {
        0 => {
            let found = has(SMAP);
            SMAP_STATE.store(1 + u8::from(found), Ordering::Relaxed);
            found
        }
        state => state == 2,
    }
}

/// Calls `f`, which may touch the task's memory.
fn allowed<R>(f: impl FnOnce() -> R) -> R {
    if has_smap() {
        // SAFETY: the processor has the instruction; it allows the caller's next accesses.
        unsafe { asm!("stac", options(nostack)) };
    }
    let result = f();
    forbid();
    result
}

/// Forbids the kernel to access the task's memory from here on.
pub(crate) fn forbid() {
    if has_smap() {
        // SAFETY: the processor has the instruction.
        unsafe { asm!("clac", options(nostack)) };
    }
}
