//! A handler's stack frame, and the return from it.

use super::{Action, Info, Set, SignalStack, info};
use crate::errno::Errno;
use crate::process::Thread;
use linux_raw_sys::general::SA_ONSTACK;

/// Bytes that functions may use below their stack pointer.
const RED_ZONE: usize = 128;
/// `ucontext`, in words: flags, link and stack; general registers from r8 to the flags; segments,
/// error, number, mask, address of a fault, address of the SSE registers; eight unused; the mask.
type Context = [usize; 38];
const STACK: usize = 2;
const GENERAL: usize = 5;
const SEGMENTS: usize = 23;
const FAULT_ADDRESS: usize = 27;
const FLOATING: usize = 28;
const MASK: usize = 37;
/// The processor's flag to trap after each instruction. A handler begins without it, and without
/// the direction flag.
const STEP: usize = 1 << 8;
const DOWN: usize = 1 << 10;
/// Flags that say that the stack segment is present, and is restored.
const SEGMENT_FLAGS: usize = 6;
/// Bytes of the frame, with the return address.
const FRAME: usize = 8 + size_of::<Context>() + info::BYTES;

impl Thread {
    /// Writes the handler's arguments to the stack, and makes the thread continue in the handler.
    pub(super) fn push_handler(&mut self, action: &Action, info: &Info) -> Result<(), Errno> {
        let pointer = self.frame.rsp;
        let other = match action.flags & SA_ONSTACK {
            0 => None,
            _ => self.signal_stack.top(pointer),
        };
        // The stack pointer may have any value: only the thread's memory is written.
        let top = other.unwrap_or(pointer.wrapping_sub(RED_ZONE));
        let registers = top.wrapping_sub(size_of_val(&self.frame.sse)) & !63;
        self.write_bytes(registers, &self.frame.sse)?;
        // The alignment is that after a call.
        let at = (registers.wrapping_sub(FRAME) & !15).wrapping_sub(8);
        let context = at.wrapping_add(8);
        let told = context.wrapping_add(size_of::<Context>());
        self.write_bytes(told, &info.bytes())?;
        let words = self.context(registers, info).map(usize::to_le_bytes);
        self.write_bytes(context, words.as_flattened())?;
        self.write(at, action.restorer)?;
        let signal = info.signal.number() as usize;
        let frame = &mut self.frame;
        frame.go_to(action.handler);
        frame.clear_flags(STEP | DOWN);
        (frame.rsp, frame.rax) = (at, 0);
        (frame.rdi, frame.rsi, frame.rdx) = (signal, told, context);
        Ok(())
    }

    /// The interrupted thread's registers and mask, as `ucontext` has them.
    fn context(&self, registers: usize, info: &Info) -> Context {
        let mut words = [0; _];
        let frame = &self.frame;
        words[0] = SEGMENT_FLAGS;
        words[STACK..GENERAL].copy_from_slice(&self.signal_stack.words(frame.rsp));
        for (place, value) in words[GENERAL..].iter_mut().zip(frame.general()) {
            *place = value;
        }
        words[SEGMENTS] = frame.segments();
        words[FAULT_ADDRESS] = info.fault_address();
        words[FLOATING] = registers;
        words[MASK] = self.saved_mask.unwrap_or(self.mask()).0 as usize;
        words
    }

    /// Makes the thread continue where it was before its handler.
    pub fn return_from_handler(&mut self) -> Result<(), Errno> {
        let mut bytes = [0; size_of::<Context>()];
        self.read_bytes(self.frame.rsp, &mut bytes)?;
        let (words, _) = bytes.as_chunks::<8>();
        let words = |index: usize| usize::from_le_bytes(words[index]);
        if words(SEGMENTS) != self.frame.segments() {
            return Err(Errno::FAULT);
        }
        let mut sse = self.frame.sse;
        self.read_bytes(words(FLOATING), &mut sse)?;
        if !self.frame.set_sse(&sse) {
            return Err(Errno::FAULT);
        }
        let general = core::array::from_fn(|index| words(GENERAL + index));
        self.frame.set_general(general);
        self.set_mask(Set(words(MASK) as u64));
        let stack = core::array::from_fn(|index| words(STACK + index));
        // As on Linux, an invalid stack leaves the current one.
        self.signal_stack = SignalStack::new(stack).unwrap_or(self.signal_stack);
        Ok(())
    }
}
