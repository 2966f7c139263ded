//! Waiting at words of memory.

use super::time::nanoseconds;
use super::{Answer, Arguments, Errno};
use crate::process::Thread;
use crate::system::system;
use ipc::Wait;
use ipc::futex::Name;
use linux_raw_sys::general::*;
use machine::Clock;
use machine::pte::USER_END;
use metal::Metal;

pub fn futex(thread: &mut Thread, arguments: Arguments) -> Answer {
    let [at, operation, value, timeout, other, last] = arguments;
    let by_realtime = operation as u32 & FUTEX_CLOCK_REALTIME != 0;
    let is_private = operation as u32 & FUTEX_PRIVATE_FLAG != 0;
    let operation = operation as u32 & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    if !at.is_multiple_of(4) {
        return Err(Errno::INVAL);
    }
    let word = name(thread, at, is_private);
    let of_bits = matches!(operation, FUTEX_WAIT_BITSET | FUTEX_WAKE_BITSET);
    match operation {
        // All waiters wait for all bits, so some are woken in vain.
        _ if of_bits && last as u32 == 0 => Err(Errno::INVAL),
        FUTEX_WAIT | FUTEX_WAIT_BITSET => {
            let until = deadline(thread, timeout, operation == FUTEX_WAIT, by_realtime)?;
            wait(thread, word, at, value as u32, until)
        }
        FUTEX_WAKE | FUTEX_WAKE_BITSET => {
            check_address(thread, at, is_private)?;
            Ok(wake_named(word, value))
        }
        FUTEX_REQUEUE | FUTEX_CMP_REQUEUE => {
            let counts = [value as i32, timeout as i32].map(usize::try_from);
            let [Ok(woken), Ok(moved)] = counts else {
                return Err(Errno::INVAL);
            };
            check_address(thread, other, is_private)?;
            let still = || match operation {
                FUTEX_CMP_REQUEUE => Ok(thread.read::<u32>(at)? == last as u32),
                _ => Ok(true),
            };
            let words = [word, name(thread, other, is_private)];
            requeue(words, [woken, moved], still)
        }
        FUTEX_WAKE_OP => {
            let theirs = name(thread, other, is_private);
            let does = change(thread, other, last as u32)?;
            let woken = wake_named(word, value);
            let more = if does { wake_named(theirs, timeout) } else { 0 };
            Ok(woken + more)
        }
        _ => Err(Errno::NOSYS),
    }
}

/// Fails for an invalid address. A process's private word need not be mapped.
fn check_address(thread: &Thread, at: usize, is_private: bool) -> Result<(), Errno> {
    if !is_private {
        thread.read::<u32>(at)?;
    } else if at >= USER_END {
        return Err(Errno::FAULT);
    }
    Ok(())
}

/// Changes a word as `FUTEX_WAKE_OP` says, atomically. Returns true if the old value passes the
/// comparison.
fn change(thread: &Thread, at: usize, how: u32) -> Result<bool, Errno> {
    // Signed numbers of 12 bits.
    let number = |shift: u32| ((how << (20 - shift)) as i32 >> 20) as u32;
    let (mut operand, compared) = (number(12), number(0));
    if how >> 28 & FUTEX_OP_OPARG_SHIFT != 0 {
        operand = 1 << (operand & 31);
    }
    let change: fn(u32, u32) -> u32 = match how >> 28 & 7 {
        FUTEX_OP_SET => |_, operand| operand,
        FUTEX_OP_ADD => u32::wrapping_add,
        FUTEX_OP_OR => |word, operand| word | operand,
        FUTEX_OP_ANDN => |word, operand| word & !operand,
        FUTEX_OP_XOR => |word, operand| word ^ operand,
        _ => return Err(Errno::NOSYS),
    };
    if !at.is_multiple_of(4) {
        return Err(Errno::INVAL);
    }
    let before = thread.update(at, |word| change(word, operand))?;
    let (before, compared) = (before as i32, compared as i32);
    match how >> 24 & 15 {
        FUTEX_OP_CMP_EQ => Ok(before == compared),
        FUTEX_OP_CMP_NE => Ok(before != compared),
        FUTEX_OP_CMP_LT => Ok(before < compared),
        FUTEX_OP_CMP_LE => Ok(before <= compared),
        FUTEX_OP_CMP_GT => Ok(before > compared),
        FUTEX_OP_CMP_GE => Ok(before >= compared),
        _ => Err(Errno::NOSYS),
    }
}

/// The word's name.
fn name(thread: &Thread, at: usize, is_private: bool) -> Name {
    if is_private {
        thread.own_word(at)
    } else {
        thread.word(at)
    }
}

/// The deadline of a wait: after a time, or at a time, of a clock.
fn deadline(thread: &Thread, timeout: usize, is_relative: bool, by_realtime: bool) -> Answer {
    if timeout == 0 {
        return Ok(usize::MAX);
    }
    let time = nanoseconds(thread.read(timeout)?)?;
    let now = Metal::now();
    let time = match (is_relative, by_realtime) {
        (true, _) => now.saturating_add(time),
        (false, true) => time.saturating_sub(metal::start_of_time()),
        (false, false) => time,
    };
    Ok(time as usize)
}

fn wait(thread: &mut Thread, word: Name, at: usize, value: u32, until: usize) -> Answer {
    // This brings the word into memory before a lock is held; under the lock it is read again.
    let look = || -> Result<bool, Errno> { Ok(thread.read::<u32>(at)? == value) };
    if !look()? {
        return Err(Errno::AGAIN);
    }
    let (futexes, kernel) = (&system().futexes, &system().kernel);
    let waits = || !thread.is_disturbed();
    // A restarted wait keeps its deadline.
    let until = thread.until.unwrap_or(until as u64);
    let wait = || futexes.wait_while(kernel, word, waits, look);
    match thread.wait_until(until, wait)? {
        Wait::Woken => Ok(0),
        Wait::Differs => Err(Errno::AGAIN),
        Wait::Stopped if Metal::now() >= until => Err(Errno::TIMEDOUT),
        Wait::Stopped => {
            // As on Linux, a wait with a limit is not restarted after a handler.
            thread.until = (until != u64::MAX).then_some(until);
            Err(Errno::INTR)
        }
    }
}

/// Wakes threads that wait at the first word, and moves others to the second one; returns their
/// number.
fn requeue(
    words: [Name; 2],
    counts: [usize; 2],
    still: impl Fn() -> Result<bool, Errno>,
) -> Answer {
    // This brings the word into memory before a lock is held.
    still()?;
    let (futexes, kernel) = (&system().futexes, &system().kernel);
    let told = futexes.requeue(kernel, words, counts, &still)?;
    told.map(|[woken, moved]| woken + moved).ok_or(Errno::AGAIN)
}

/// Wakes threads of any process that wait at a word.
fn wake_named(word: Name, count: usize) -> usize {
    system().futexes.wake(&system().kernel, word, count)
}
