//! The common part of calls on objects with numbers and keys (System V).

use super::Errno;
use crate::numbered::{Keyed, Numbered};

pub const IPC_CREAT: u32 = 0o1000;
pub const IPC_EXCL: u32 = 0o2000;
pub const IPC_NOWAIT: u32 = 0o4000;
pub const IPC_RMID: u32 = 0;
pub const IPC_SET: u32 = 1;
pub const IPC_STAT: u32 = 2;
pub const IPC_INFO: u32 = 3;

/// The number of the object with a key, if it `fits`, or of a new one, if there is none and the
/// flags ask for it.
pub fn get<T: Keyed>(
    all: &mut Numbered<T>,
    key: i32,
    flags: u32,
    fits: impl FnOnce(&T) -> Result<(), Errno>,
    make: impl FnOnce(i32) -> Result<T, Errno>,
) -> Result<usize, Errno> {
    let has = |bits| flags & bits == bits;
    match all.find(key) {
        Some(_) if has(IPC_CREAT | IPC_EXCL) => Err(Errno::EXIST),
        Some((number, it)) => fits(it).map(|()| number as usize),
        None if key != 0 && !has(IPC_CREAT) => Err(Errno::NOENT),
        None => all.add(make).map(|number| number as usize),
    }
}
