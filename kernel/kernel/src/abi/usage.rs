//! The resources that processes have used, and the machine's.

use super::{Answer, Arguments, Errno};
use crate::proc::amounts;
use crate::process::{PROCESSES, Thread, Used};
use linux_raw_sys::general::{RUSAGE_CHILDREN, RUSAGE_SELF, RUSAGE_THREAD};
use machine::Clock;
use metal::Metal;

const SECOND: u64 = 1_000_000_000;
/// Nanoseconds of a tick (`sysconf(_SC_CLK_TCK)`).
const TICK: u64 = SECOND / 100;

pub fn getrusage(thread: &mut Thread, [who, to, ..]: Arguments) -> Answer {
    let used = match who as i32 {
        who if who == RUSAGE_SELF as i32 => thread.process.used(),
        who if who == RUSAGE_THREAD as i32 => thread.shared.usage.used(),
        RUSAGE_CHILDREN => *thread.process.family.used.lock(),
        _ => return Err(Errno::INVAL),
    };
    tell(thread, to, used)
}

/// Writes `struct rusage`. Fields that are not counted are 0: sizes (most of them also on Linux)
/// and messages.
pub fn tell(thread: &Thread, to: usize, used: Used) -> Answer {
    /// The positions of words in it.
    const FAULTS: usize = 8;
    const SLEEPS: usize = 16;
    let time = |time: u64| [time / SECOND, time % SECOND / 1000];
    let mut words = [0_u64; 18];
    words[..2].copy_from_slice(&time(used.user));
    words[2..4].copy_from_slice(&time(used.kernel));
    (words[FAULTS], words[SLEEPS]) = (used.faults, used.sleeps);
    thread.write_bytes(to, words.map(u64::to_le_bytes).as_flattened())?;
    Ok(0)
}

pub fn times(thread: &mut Thread, [to, ..]: Arguments) -> Answer {
    if to != 0 {
        let (own, children) = (thread.process.used(), *thread.process.family.used.lock());
        let words = [own.user, own.kernel, children.user, children.kernel];
        let words = words.map(|time| (time / TICK).to_le_bytes());
        thread.write_bytes(to, words.as_flattened())?;
    }
    Ok((Metal::now() / TICK) as usize)
}

/// The load is not measured, so it is 0.
pub fn sysinfo(thread: &mut Thread, [to, ..]: Arguments) -> Answer {
    let amounts = amounts();
    let processes = PROCESSES.count().min(usize::from(u16::MAX));
    let words = [
        Metal::now() / SECOND,
        0,
        0,
        0,
        amounts.total,
        amounts.free,
        0,
        0,
        amounts.swap,
        amounts.free_swap,
        processes as u64,
        0,
        0,
        // The unit of all these, in bytes.
        1,
    ];
    thread.write_bytes(to, words.map(u64::to_le_bytes).as_flattened())?;
    Ok(0)
}

/// All users are root, and may do everything.
pub fn capget(thread: &mut Thread, [header, data, ..]: Arguments) -> Answer {
    /// The version of the structures, which have 64 capabilities.
    const VERSION: u32 = 0x2008_0522;
    const ALL: u64 = (1 << 41) - 1;
    let version: u32 = thread.read(header)?;
    if version != VERSION {
        thread.write(header, VERSION)?;
        return if data == 0 { Ok(0) } else { Err(Errno::INVAL) };
    }
    let pid: u32 = thread.read(header + size_of::<u32>())?;
    if pid as i32 != 0 && PROCESSES.get(pid).is_none() {
        return Err(Errno::SRCH);
    }
    if data != 0 {
        let user = match pid {
            0 => thread.process.users.lock().user,
            pid => PROCESSES.get(pid).ok_or(Errno::SRCH)?.users.lock().user,
        };
        let of = |has| if has { ALL } else { 0 };
        let (effective, permitted) = (of(user.effective == 0), of(user.has(0)));
        let words = [effective, permitted, 0, effective >> 32, permitted >> 32, 0];
        let words = words.map(|word| (word as u32).to_le_bytes());
        thread.write_bytes(data, words.as_flattened())?;
    }
    Ok(0)
}
