//! Address spaces. Entries are tagged if the processor has tags (PCIDs) and the instruction that
//! flushes by them. If not, there is one tag, and the processor drops tasks' translations when it
//! loads another root.

use crate::cpu::Cpu;
use crate::memory::kernel_root;
use crate::{Metal, access, shootdown, start};
use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};
use machine::{Access, Asid, CpuSet, Flush, Frame, KernelEntries, Mmu, PAGE_SIZE, PageFault, pte};
use x86_64::instructions::tlb::{InvPcidCommand, Pcid, flush_pcid};
use x86_64::registers::control::{Cr3, Cr4, Cr4Flags};

/// The most pages that are flushed one by one.
const FEW: usize = 32;

// SAFETY: the processor keeps the contract of accesses; `access` makes the checks that it makes for
// tasks but not for the kernel. `flush` and `shootdown` say why flushes are complete. The kernel's
// entries are `boot.s`'s; none has the user bit.
unsafe impl Mmu for Metal {
    fn asids(&self) -> usize {
        if is_tagged() { KERNEL.0.into() } else { 1 }
    }

    fn kernel_entries(&self) -> Option<KernelEntries> {
        Some(KernelEntries {
            root: kernel_root(),
            places: pte::USER_ENTRIES..pte::ENTRIES,
        })
    }

    unsafe fn activate(&self, root: Frame, asid: Asid) {
        translate_by(Cpu::this(), Some((root, asid)));
    }

    fn deactivate(&self) {
        translate_by(Cpu::this(), None);
    }

    fn flush_local(&self, asid: Asid, what: Flush) {
        flush(asid, what);
    }

    fn shootdown(&self, targets: &CpuSet, asid: Asid, what: Flush) {
        shootdown::shootdown(targets, asid, what);
    }

    unsafe fn load(&self, address: usize) -> Result<u64, PageFault> {
        // SAFETY: so says the caller.
        unsafe { access::load(address, Access::Read) }
    }

    unsafe fn store(&self, address: usize, value: u64) -> Result<(), PageFault> {
        // SAFETY: so says the caller.
        unsafe { access::store(address, value) }
    }

    /// Reads the word as data, if the tables allow its execution: the kernel executes no task's
    /// code.
    unsafe fn fetch(&self, address: usize) -> Result<u64, PageFault> {
        // SAFETY: so says the caller.
        unsafe { access::load(address, Access::Execute) }
    }
}

/// Switches the calling CPU's tags on, if it has them and flushes by them. It executes in the
/// kernel's part, and has never translated for a task.
pub(crate) fn begin() {
    let is_tagged = start::has_tags() && start::has(INVPCID);
    TAGGED.store(is_tagged, Ordering::Relaxed);
    if is_tagged {
        // SAFETY: the CPU has the feature and the tag 0, and the kernel's root maps this code. What
        // is left of the start's entries is dropped.
        unsafe {
            Cr4::update(|flags| flags.insert(Cr4Flags::PCID));
            load((kernel_root(), KERNEL));
            flush_pcid(InvPcidCommand::AllExceptGlobal);
        }
    }
}

/// A root table and its tag.
pub(crate) type Tables = (Frame, Asid);

/// The kernel's own tag: the last of the processor's.
const KERNEL: Asid = Asid(4095);

/// Bit of CPUID's leaf 7: the instruction that flushes by tags.
const INVPCID: u32 = 1 << 10;

/// True if entries are tagged. All CPUs write the same.
static TAGGED: AtomicBool = AtomicBool::new(false);

fn is_tagged() -> bool {
    // Relaxed: a CPU has written it before it translates for a task.
    TAGGED.load(Ordering::Relaxed)
}

/// Makes the calling CPU translate for tasks by `tables`, or not at all.
pub(crate) fn translate_by(cpu: &Cpu, tables: Option<Tables>) {
    let before = cpu.tables.replace(tables);
    if before == tables {
        return;
    }
    if before.is_none() {
        shootdown::come_back(cpu);
    }
    if tables.is_some() {
        cpu.last_tables.set(tables);
    }
    // SAFETY: a root with the kernel's entries, as `Mmu::activate` asks for.
    unsafe { load(tables.unwrap_or((kernel_root(), KERNEL))) };
    if tables.is_none() {
        shootdown::go_away(cpu);
    }
}

/// Loads a root table. Without tags, the CPU drops all but the kernel's entries, which are global.
unsafe fn load((root, asid): Tables) {
    let keep = 1 << 63;
    let tag = if is_tagged() {
        keep | u64::from(asid.0)
    } else {
        0
    };
    // SAFETY: the caller's.
    unsafe { asm!("mov cr3, {}", in(reg) root.address() | tag, options(nostack, preserves_flags)) };
}

/// Drops the calling CPU's cached copies of the tasks' entries with the tag. When it returns, all
/// accesses that came before are performed, and none uses a dropped copy: the instructions
/// serialize.
pub(crate) fn flush(asid: Asid, what: Flush) {
    // A handler may run between the two steps of `translate_by`, so this reads the register.
    let is_current = !is_tagged() || Cr3::read_pcid().1.value() == asid.0;
    match what {
        Flush::Range(range) if range.pages() <= FEW && is_current => {
            for address in (range.start..range.end).step_by(PAGE_SIZE) {
                // SAFETY: drops translations only.
                unsafe {
                    asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags));
                }
            }
        }
        _ if is_tagged() => forget(InvPcidCommand::Single(Pcid::new(asid.0).expect("a tag"))),
        // SAFETY: the root that it has or is about to have.
        _ => unsafe { load(Cpu::this().tables.get().unwrap_or((kernel_root(), KERNEL))) },
    }
}

/// Drops all tags' entries on a CPU that has translated for no task. Without tags it has none.
pub(crate) fn forget_all() {
    if is_tagged() {
        forget(InvPcidCommand::AllExceptGlobal);
    }
}

fn forget(what: InvPcidCommand) {
    // SAFETY: a processor with tags has the instruction; it drops translations only.
    unsafe { flush_pcid(what) };
}
