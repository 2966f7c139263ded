//! Users and groups: there is one of each, root, as in a name space that maps no other.

use super::{Answer, Arguments, Errno};
use crate::process::Thread;

/// The number that leaves a user or a group as it is.
const SAME: u32 = u32::MAX;

/// `getuid`, `geteuid`, `getgid`, `getegid`.
pub fn root(_: &mut Thread, _: Arguments) -> Answer {
    Ok(0)
}

/// Fails unless this is the only user, or group.
fn only(number: usize) -> Result<(), Errno> {
    match number as u32 {
        0 => Ok(()),
        _ => Err(Errno::INVAL),
    }
}

/// Fails unless all of these leave the user, or the group, as it is.
fn set(numbers: &[usize]) -> Answer {
    let mut numbers = numbers.iter().filter(|&&number| number as u32 != SAME);
    numbers.try_for_each(|&number| only(number))?;
    Ok(0)
}

/// `setuid`, `setgid`.
pub fn set_one(_: &mut Thread, [number, ..]: Arguments) -> Answer {
    only(number)?;
    Ok(0)
}

/// `setreuid`, `setregid`.
pub fn set_two(_: &mut Thread, [real, effective, ..]: Arguments) -> Answer {
    set(&[real, effective])
}

/// `setresuid`, `setresgid`.
pub fn set_three(_: &mut Thread, [real, effective, saved, ..]: Arguments) -> Answer {
    set(&[real, effective, saved])
}

/// `getresuid`, `getresgid`.
pub fn get_three(thread: &mut Thread, [real, effective, saved, ..]: Arguments) -> Answer {
    for to in [real, effective, saved] {
        thread.write(to, 0_u32)?;
    }
    Ok(0)
}

/// `setfsuid`, `setfsgid`: they return the old one, and do not fail.
pub fn of_files(_: &mut Thread, _: Arguments) -> Answer {
    Ok(0)
}

/// There are no further groups.
pub fn getgroups(_: &mut Thread, [most, ..]: Arguments) -> Answer {
    if (most as i32) < 0 {
        return Err(Errno::INVAL);
    }
    Ok(0)
}

/// Refuses further groups.
pub fn setgroups(_: &mut Thread, [count, ..]: Arguments) -> Answer {
    match count as i32 {
        0 => Ok(0),
        _ => Err(Errno::PERM),
    }
}
