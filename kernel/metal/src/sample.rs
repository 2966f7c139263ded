//! Samples of the CPUs' work. Each CPU's timer, which also serves the scheduler, takes them.

use crate::context::kick_others;
use crate::cpu::Cpu;
use crate::frame::Frame;
use crate::{clock, report, stacks};
use core::iter;
use core::sync::atomic::{AtomicU64, Ordering};
use machine::{NativeCell, SharedCell, pte};

/// Nanoseconds from one sample of a CPU to the next; 0 for no samples. A CPU sees a change at an
/// interrupt.
static PERIOD: AtomicU64 = AtomicU64::new(0);
/// The function that takes the samples. Written once, before `PERIOD` is first set.
static TAKE: NativeCell<Option<fn(&Sample)>> = NativeCell::holding(None);

/// A CPU's work at the moment when its timer went off.
pub struct Sample {
    /// The CPU's index.
    pub cpu: usize,
    /// The instruction, the program's or the kernel's.
    pub at: usize,
    /// Nanoseconds since the CPU's last sample.
    pub elapsed: u64,
    frame_pointer: usize,
    stack_pointer: usize,
}

impl Sample {
    /// The return addresses of the kernel's running functions, the innermost first; none in user
    /// mode.
    pub fn callers(&self) -> impl Iterator<Item = usize> {
        let stack = if self.at < pte::USER_END {
            0..0
        } else {
            stacks::around(self.stack_pointer)
        };
        let (mut frame, mut lowest) = (self.frame_pointer, self.stack_pointer);
        // Precompiled code may use the register for something else.
        iter::from_fn(move || {
            let fits = frame >= lowest && frame.is_multiple_of(8) && frame + 16 <= stack.end;
            // SAFETY: two words of the interrupted stack.
            let (next, back) = fits.then(|| unsafe { report::above(frame) })??;
            (frame, lowest) = (next, frame + 16);
            Some(back)
        })
    }
}

/// Samples each CPU's work every `period` nanoseconds, unless it is idle, and passes it to `take`,
/// which runs in the handler of an interrupt.
///
/// # Safety
/// Calls do not overlap, and all have the same `take`.
pub unsafe fn begin(period: u64, take: fn(&Sample)) {
    if PERIOD.load(Ordering::Relaxed) == 0 {
        // SAFETY: it is read only while there is a period, or has this value already.
        unsafe { *TAKE.write() = Some(take) };
    }
    // Release: pairs with the acquire in `ring`.
    PERIOD.store(period, Ordering::Release);
    kick_others();
    notice(Cpu::this());
}

/// Stops the sampling.
pub fn end() {
    PERIOD.store(0, Ordering::Relaxed);
}

/// Starts to sample `cpu`, the calling one, at an interrupt, if sampling is on.
pub(crate) fn notice(cpu: &Cpu) {
    let period = PERIOD.load(Ordering::Relaxed);
    if period != 0 && cpu.sample_at.get() == u64::MAX {
        let time = clock::now();
        cpu.sampled.set(time);
        cpu.sample_at.set(time + period);
        clock::arm(cpu);
    }
}

/// Takes a sample if one is due, when the timer of `cpu`, the calling one, went off while it ran
/// `frame`.
pub(crate) fn ring(cpu: &Cpu, frame: &Frame) {
    let (time, due) = (clock::now(), cpu.sample_at.get());
    if time < due {
        return;
    }
    // Acquire: pairs with the release in `begin`.
    let period = PERIOD.load(Ordering::Acquire);
    if period == 0 {
        return cpu.sample_at.set(u64::MAX);
    }
    let next = due + period;
    cpu.sample_at
        .set(if time < next { next } else { time + period });
    let elapsed = time - cpu.sampled.replace(time);
    if cpu.idle.load(Ordering::Relaxed) {
        return;
    }
    // SAFETY: written before there was a period.
    if let Some(take) = unsafe { *TAKE.read() } {
        take(&Sample {
            cpu: cpu.index.get(),
            at: frame.rip,
            elapsed,
            frame_pointer: frame.rbp,
            stack_pointer: frame.rsp,
        });
    }
}
