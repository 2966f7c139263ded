//! Words of the calling thread.
//!
//! A task of a scheduler may go on in another thread after any call that switches. The compiler
//! takes the address of a `thread_local!` variable for constant within a function, and may keep it
//! in a register across such a call: behind it, that is the other thread's variable. So each access
//! here is one instruction that names the thread by its segment register, and that is opaque to the
//! compiler. It repeats no load behind a call, and drops those that are not needed, as it would of
//! a variable.

/// One of the words.
pub(crate) struct Word<const INDEX: usize>;

/// The CPU that the thread is: a [`machine::CpuId`].
pub(crate) const CPU: Word<0> = Word;
/// Where the running task's [`machine::Locals`] stand; 0 if they are the thread's, and it has not
/// used them yet.
pub(crate) const LOCALS: Word<1> = Word;
/// The parts for a scheduler of the machine whose tasks the thread runs; 0 if the thread is a task.
pub(crate) const CREW: Word<2> = Word;
/// The pins of the running task, if they are counted.
pub(crate) const PINS: Word<3> = Word;

#[cfg(not(miri))]
mod by_segment {
    use super::Word;
    use core::arch::{asm, global_asm};

    // `CPU` is `machine::CpuId::NONE` at first, the others are 0.
    global_asm!(
        ".pushsection .tdata.scalevm_hosted_words, \"awT\", @progbits",
        ".globl scalevm_hosted_words",
        ".hidden scalevm_hosted_words",
        ".p2align 5",
        ".type scalevm_hosted_words, @object",
        ".size scalevm_hosted_words, 32",
        "scalevm_hosted_words:",
        ".quad -1",
        ".quad 0",
        ".quad 0",
        ".quad 0",
        ".popsection",
    );

    impl<const INDEX: usize> Word<INDEX> {
        /// The word.
        #[inline(always)]
        pub(crate) fn get(self) -> usize {
            let value;
            // SAFETY: a load of the thread's own word. `readonly`: a call that may switch may also
            // write to memory, so no load is moved across it.
            unsafe {
                asm!("mov {value}, qword ptr fs:[scalevm_hosted_words@TPOFF + {offset}]",
                     value = out(reg) value, offset = const INDEX * 8,
                     options(pure, readonly, nostack, preserves_flags));
            }
            value
        }

        /// Changes the word.
        #[inline(always)]
        pub(crate) fn set(self, value: usize) {
            // SAFETY: a store to the thread's own word, to which no reference exists.
            unsafe {
                asm!("mov qword ptr fs:[scalevm_hosted_words@TPOFF + {offset}], {value}",
                     value = in(reg) value, offset = const INDEX * 8,
                     options(nostack, preserves_flags));
            }
        }
    }
}

/// For an interpreter, which has no switches either.
#[cfg(miri)]
mod by_variable {
    use super::Word;
    use std::cell::Cell;

    thread_local! {
        static WORDS: [Cell<usize>; 4] =
            const { [Cell::new(usize::MAX), Cell::new(0), Cell::new(0), Cell::new(0)] };
    }

    impl<const INDEX: usize> Word<INDEX> {
        /// The word.
        pub(crate) fn get(self) -> usize {
            WORDS.with(|words| words[INDEX].get())
        }

        /// Changes the word.
        pub(crate) fn set(self, value: usize) {
            WORDS.with(|words| words[INDEX].set(value));
        }
    }
}
