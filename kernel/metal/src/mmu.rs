//! Address spaces. One tag: the processor forgets tasks' translations when it gets another root.

use crate::cpu::Cpu;
use crate::memory::kernel_root;
use crate::{Metal, access, shootdown};
use core::arch::asm;
use machine::{Access, Asid, CpuSet, Flush, Frame, KernelEntries, Mmu, PAGE_SIZE, PageFault, pte};

/// The most pages that are flushed one by one.
const FEW: usize = 32;

// SAFETY: the processor keeps the contract of accesses; `access` makes the checks that it makes for
// tasks but not for the kernel. `flush` and `shootdown` say why flushes are complete. The kernel's
// entries are `boot.s`'s, none of which has the user bit.
unsafe impl Mmu for Metal {
    fn asids(&self) -> usize {
        1
    }

    fn kernel_entries(&self) -> Option<KernelEntries> {
        Some(KernelEntries {
            root: kernel_root(),
            places: pte::USER_ENTRIES..pte::ENTRIES,
        })
    }

    fn activate(&self, root: Frame, _asid: Asid) {
        translate_by(Cpu::this(), Some(root));
    }

    fn deactivate(&self) {
        translate_by(Cpu::this(), None);
    }

    fn flush_local(&self, _asid: Asid, what: Flush) {
        flush(what);
    }

    fn shootdown(&self, targets: &CpuSet, asid: Asid, what: Flush) {
        shootdown::shootdown(targets, asid, what);
    }

    fn load(&self, address: usize) -> Result<u64, PageFault> {
        access::load(address, Access::Read)
    }

    fn store(&self, address: usize, value: u64) -> Result<(), PageFault> {
        access::store(address, value)
    }

    /// Reads the word as data, if the tables allow its execution: the kernel executes no task's code.
    fn fetch(&self, address: usize) -> Result<u64, PageFault> {
        access::load(address, Access::Execute)
    }
}

/// Makes the calling CPU translate for tasks by `root`, or not at all.
pub(crate) fn translate_by(cpu: &Cpu, root: Option<Frame>) {
    if cpu.root.replace(root) != root {
        load_root(root.unwrap_or(kernel_root()));
    }
}

/// Loads a root. The CPU forgets all but the kernel's entries, which are global.
fn load_root(root: Frame) {
    // SAFETY: a root with the kernel's entries, as `Mmu::activate` asks for.
    unsafe { asm!("mov cr3, {}", in(reg) root.address(), options(nostack, preserves_flags)) };
}

/// Drops the calling CPU's cached copies of the tasks' entries. When it returns, all accesses that
/// came before are performed, and none uses a dropped copy: both instructions serialize.
pub(crate) fn flush(what: Flush) {
    match what {
        Flush::Range(range) if range.pages() <= FEW => {
            for address in (range.start..range.end).step_by(PAGE_SIZE) {
                // SAFETY: drops translations only.
                unsafe {
                    asm!("invlpg [{}]", in(reg) address, options(nostack, preserves_flags));
                }
            }
        }
        _ => load_root(Cpu::this().root.get().unwrap_or(kernel_root())),
    }
}
