//! The words of the calling thread.
//!
//! One instruction finds where they are, and one reads them: the *initial-exec* model, for which a
//! shared library takes 16 bytes of each thread's static storage. Variables of `thread_local!`
//! would be a call each there.

use core::arch::{asm, global_asm};

/// One of the words.
pub(crate) struct Word<const INDEX: usize>;

/// The CPU that the thread is: a [`machine::CpuId`], `NONE` at first.
pub(crate) const CPU: Word<0> = Word;
/// Where its [`crate::process::Place`] is; 0 if it has none.
pub(crate) const PLACE: Word<1> = Word;

global_asm!(
    ".pushsection .tdata.scalevm_words, \"awT\", @progbits",
    ".globl scalevm_c_words",
    ".hidden scalevm_c_words",
    ".p2align 4",
    ".type scalevm_c_words, @object",
    ".size scalevm_c_words, 16",
    "scalevm_c_words:",
    ".quad -1",
    ".quad 0",
    ".popsection",
);

impl<const INDEX: usize> Word<INDEX> {
    /// Reads the word.
    #[inline(always)]
    pub(crate) fn get(self) -> usize {
        let value;
        // SAFETY: a load of the thread's own word.
        unsafe {
            asm!("mov {value}, qword ptr [rip + scalevm_c_words@GOTTPOFF]",
                 "mov {value}, qword ptr fs:[{value} + {offset}]",
                 value = out(reg) value, offset = const INDEX * 8,
                 options(pure, readonly, nostack, preserves_flags));
        }
        value
    }

    /// Changes the word.
    pub(crate) fn set(self, value: usize) {
        // SAFETY: a store to the thread's own word, to which no reference exists.
        unsafe {
            asm!("mov {place}, qword ptr [rip + scalevm_c_words@GOTTPOFF]",
                 "mov qword ptr fs:[{place} + {offset}], {value}",
                 place = out(reg) _, value = in(reg) value, offset = const INDEX * 8,
                 options(nostack, preserves_flags));
        }
    }
}
