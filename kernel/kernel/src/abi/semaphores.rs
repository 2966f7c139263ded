//! Sets of semaphores (System V).

use super::segments::{IPC_CREAT, IPC_EXCL, IPC_RMID, IPC_SET, IPC_STAT, MODE};
use super::{Answer, Arguments, Errno, poll};
use crate::heap;
use crate::process::Thread;
use crate::segments::seconds;
use crate::semaphores::{LARGEST, MOST_OF_SET, Operation, Set, State};
use crate::system::system;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The most operations of a call.
const MOST_OPERATIONS: usize = 500;
const IPC_NOWAIT: u16 = 0o4000;
const SEM_UNDO: u16 = 0x1000;
const GETPID: u32 = 11;
const GETVAL: u32 = 12;
const GETALL: u32 = 13;
const GETNCNT: u32 = 14;
const GETZCNT: u32 = 15;
const SETVAL: u32 = 16;
const SETALL: u32 = 17;

pub fn semget(_: &mut Thread, [key, count, flags, ..]: Arguments) -> Answer {
    let (key, count, flags) = (key as i32, count as i32 as usize, flags as u32);
    if count > MOST_OF_SET {
        return Err(Errno::INVAL);
    }
    if heap::is_short() {
        return Err(Errno::NOMEM);
    }
    let mut sets = system().semaphores.lock();
    let set = match sets.find(key) {
        Some(_) if flags & (IPC_CREAT | IPC_EXCL) == IPC_CREAT | IPC_EXCL => Err(Errno::EXIST),
        Some(set) if count > set.state.lock().all.len() => Err(Errno::INVAL),
        Some(set) => Ok(set),
        None if key != 0 && flags & IPC_CREAT == 0 => Err(Errno::NOENT),
        None if count == 0 => Err(Errno::INVAL),
        None => sets.make(key, count, flags & MODE),
    }?;
    Ok(set.number() as usize)
}

fn set(number: usize) -> Result<Arc<Set>, Errno> {
    system().semaphores.lock().get(number as i32)
}

pub fn semop(thread: &mut Thread, [number, at, count, ..]: Arguments) -> Answer {
    semtimedop(thread, [number, at, count, 0, 0, 0])
}

pub fn semtimedop(thread: &mut Thread, [number, at, count, limit, ..]: Arguments) -> Answer {
    match count {
        0 => return Err(Errno::INVAL),
        1..=MOST_OPERATIONS => {}
        _ => return Err(Errno::TOOBIG),
    }
    let limit = poll::deadline(thread, limit)?;
    let read = |index| -> Result<Operation, Errno> {
        // `struct sembuf`.
        let [index, change, flags]: [u16; 3] = thread.read(at.wrapping_add(index * 6))?;
        Ok(Operation {
            index: index.into(),
            change: i32::from(change as i16),
            is_impatient: flags & IPC_NOWAIT != 0,
            is_undone: flags & SEM_UNDO != 0,
        })
    };
    let operations: Result<Vec<_>, _> = (0..count).map(read).collect();
    let (set, operations) = (set(number)?, operations?);
    let count = set.state.lock().all.len();
    if operations.iter().any(|it| it.index >= count) {
        return Err(Errno::FBIG);
    }
    set.operate(thread, &operations, limit)?;
    Ok(0)
}

pub fn semctl(thread: &mut Thread, [number, index, command, value, ..]: Arguments) -> Answer {
    let command = command as u32;
    match command {
        IPC_RMID => return system().semaphores.lock().remove(number as i32).map(|()| 0),
        IPC_SET | IPC_STAT | GETALL | SETALL => {
            let set = set(number)?;
            return of_set(thread, &set, command, value);
        }
        GETPID | GETVAL | GETNCNT | GETZCNT | SETVAL => {}
        _ => return Err(Errno::INVAL),
    }
    let set = set(number)?;
    let index = index as i32 as usize;
    if command == SETVAL {
        let value = value as i32;
        if index >= set.state.lock().all.len() {
            return Err(Errno::INVAL);
        }
        if !(0..=LARGEST).contains(&value) {
            return Err(Errno::RANGE);
        }
        set.forget(|of| of == index);
        let pid = thread.process.pid;
        set.change(|state| {
            state.all[index].value = value;
            state.all[index].last = pid;
            state.times[1] = seconds();
        });
        return Ok(0);
    }
    let state = set.state.lock();
    let semaphore = state.all.get(index).ok_or(Errno::INVAL)?;
    Ok(match command {
        GETPID => semaphore.last as usize,
        GETVAL => semaphore.value as usize,
        GETNCNT => semaphore.waiting[0] as usize,
        _ => semaphore.waiting[1] as usize,
    })
}

/// The commands on a whole set; `at` is where the caller's memory is read or written.
fn of_set(thread: &Thread, set: &Set, command: u32, at: usize) -> Answer {
    match command {
        IPC_STAT => {
            let words = told(&set.state.lock()).map(u64::to_le_bytes);
            thread.write_bytes(at, words.as_flattened())?;
        }
        IPC_SET => {
            let [owner, group, mode]: [usize; 3] = thread.read(at)?;
            set.change(|state| {
                state.owner = ((owner >> 32) as u32, group as u32);
                state.mode = (mode >> 32) as u32 & MODE;
                state.times[1] = seconds();
            });
        }
        GETALL => {
            let values = |it: &State| -> Vec<[u8; 2]> {
                let values = it.all.iter().map(|one| one.value as u16);
                values.map(u16::to_le_bytes).collect()
            };
            let values = values(&set.state.lock());
            thread.write_bytes(at, values.as_flattened())?;
        }
        _ => {
            let count = set.state.lock().all.len();
            let read = |index| thread.read::<u16>(at.wrapping_add(index * 2));
            let values: Result<Vec<u16>, _> = (0..count).map(read).collect();
            let values = values?;
            if values.iter().any(|&value| i32::from(value) > LARGEST) {
                return Err(Errno::RANGE);
            }
            set.forget(|_| true);
            let pid = thread.process.pid;
            set.change(|state| {
                for (one, value) in state.all.iter_mut().zip(values) {
                    (one.value, one.last) = (value.into(), pid);
                }
                state.times[1] = seconds();
            });
        }
    }
    Ok(0)
}

/// `struct semid64_ds`, in words.
fn told(state: &State) -> [u64; 13] {
    let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let [operated, changed] = state.times;
    [
        two(state.key as u32, state.owner.0),
        // Root has made it, as all else.
        two(state.owner.1, 0),
        two(0, state.mode),
        0,
        0,
        0,
        operated,
        0,
        changed,
        0,
        state.all.len() as u64,
        0,
        0,
    ]
}
