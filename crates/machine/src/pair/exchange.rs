//! A pair of words under the one instruction that exchanges both, on x86-64.

use crate::AtomicPair;
use core::arch::asm;
use core::cell::UnsafeCell;
use core::sync::atomic::Ordering::{self, SeqCst};

/// Two words under `lock cmpxchg16b`.
#[repr(C, align(16))]
pub struct NativePair(UnsafeCell<[u64; 2]>);

// SAFETY: every access is one atomic instruction.
unsafe impl Send for NativePair {}
// SAFETY: every access through a shared reference is one atomic instruction.
unsafe impl Sync for NativePair {}

// The language has no atomics of two sizes on one place, and its 16-byte exchange becomes a
// call into a library in code that is not compiled for the instruction. The processor has both:
// an aligned 8-byte access is single-copy atomic, a load acquires, a store releases, locked
// instructions and `xchg` fence. So everything here is written in assembly.
impl NativePair {
    /// Stores `new` if the pair is `current`; returns the old pair.
    #[inline]
    fn exchange(&self, current: [u64; 2], new: [u64; 2]) -> [u64; 2] {
        let (low, high);
        // SAFETY: every x86-64 CPU since 2006 has the instruction, and the systems this runs on
        // require it. The cell is 16-byte aligned, valid, and only accessed here. The compiler
        // may need rbx, so it is restored.
        unsafe {
            asm!(
                "xchg {new_low}, rbx",
                "lock cmpxchg16b [rdi]",
                "mov rbx, {new_low}",
                new_low = inout(reg) new[0] => _,
                in("rcx") new[1],
                in("rdi") self.0.get(),
                inout("rax") current[0] => low,
                inout("rdx") current[1] => high,
                options(nostack),
            );
        }
        [low, high]
    }

    #[inline]
    fn word(&self, index: usize) -> *mut u64 {
        assert!(index < 2, "a pair has words 0 and 1");
        self.0.get().cast::<u64>().wrapping_add(index)
    }
}

impl AtomicPair for NativePair {
    #[inline]
    fn new(value: [u64; 2]) -> Self {
        NativePair(UnsafeCell::new(value))
    }

    #[inline]
    fn load(&self) -> [u64; 2] {
        // Exchanging 0 for 0 changes nothing.
        self.exchange([0; 2], [0; 2])
    }

    #[inline]
    fn load_word(&self, index: usize, _order: Ordering) -> u64 {
        let value: u64;
        // SAFETY: an aligned load from the pair's own memory. It is not marked `readonly`, so
        // that nothing moves up across an acquiring load.
        unsafe {
            asm!("mov {value}, [{word}]",
                 value = out(reg) value, word = in(reg) self.word(index),
                 options(nostack, preserves_flags));
        }
        value
    }

    #[inline]
    fn store_word(&self, index: usize, value: u64, order: Ordering) {
        let word = self.word(index);
        // SAFETY: an aligned store to the pair's own memory, which is shared only as an atomic.
        unsafe {
            match order {
                SeqCst => asm!("xchg {value}, [{word}]", value = inout(reg) value => _,
                               word = in(reg) word, options(nostack, preserves_flags)),
                _ => asm!("mov [{word}], {value}", value = in(reg) value,
                          word = in(reg) word, options(nostack, preserves_flags)),
            }
        }
    }

    #[inline]
    fn compare_exchange(&self, current: [u64; 2], new: [u64; 2]) -> Result<[u64; 2], [u64; 2]> {
        let old = self.exchange(current, new);
        if old == current { Ok(old) } else { Err(old) }
    }
}
