//! Sets of semaphores (System V).

use super::numbered::{IPC_INFO, IPC_NOWAIT, IPC_RMID, IPC_SET, IPC_STAT, get};
use super::{Answer, Arguments, Errno, poll};
use crate::heap;
use crate::numbered::seconds;
use crate::process::Thread;
use crate::semaphores::{LARGEST, MOST, MOST_OF_SET, Operation, SEMAPHORES, Set, State};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The most operations of a call.
const MOST_OPERATIONS: usize = 500;
const SEM_UNDO: u32 = 0x1000;
const GETPID: u32 = 11;
const GETVAL: u32 = 12;
const GETALL: u32 = 13;
const GETNCNT: u32 = 14;
const GETZCNT: u32 = 15;
const SETVAL: u32 = 16;
const SETALL: u32 = 17;
const SEM_STAT: u32 = 18;
const SEM_INFO: u32 = 19;
const SEM_STAT_ANY: u32 = 20;

pub fn semget(_: &mut Thread, [key, count, flags, ..]: Arguments) -> Answer {
    let (key, count, flags) = (key as i32, count as i32 as usize, flags as u32);
    if count > MOST_OF_SET {
        return Err(Errno::INVAL);
    }
    let mut sets = SEMAPHORES.lock();
    let fits = |set: &Arc<Set>| {
        if count > set.state.lock().all.len() {
            Err(Errno::INVAL)
        } else {
            Ok(())
        }
    };
    get(&mut sets, key, flags, fits, |number| match count {
        0 => Err(Errno::INVAL),
        count => Set::new(number, key, count, flags),
    })
}

fn set(number: usize) -> Result<Arc<Set>, Errno> {
    SEMAPHORES.lock().get(number as i32).cloned()
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
            is_impatient: u32::from(flags) & IPC_NOWAIT != 0,
            is_undone: u32::from(flags) & SEM_UNDO != 0,
        })
    };
    let operations = heap::collect((0..count).map(read))?;
    let set = set(number)?;
    let count = set.state.lock().all.len();
    if operations.iter().any(|it| it.index >= count) {
        return Err(Errno::FBIG);
    }
    set.operate(thread, operations, limit)?;
    Ok(0)
}

pub fn semctl(thread: &mut Thread, [number, index, command, value, ..]: Arguments) -> Answer {
    match command as u32 {
        IPC_RMID => {
            let removed = SEMAPHORES.lock().remove(number as i32)?;
            removed.remove();
            Ok(0)
        }
        command @ (IPC_INFO | SEM_INFO) => info(thread, command, value),
        SEM_STAT | SEM_STAT_ANY => {
            let mut sets = SEMAPHORES.lock();
            let (number, set) = sets.at(number as i32 as usize)?;
            let told = told(set);
            drop(sets);
            thread.write(value, told)?;
            Ok(number as usize)
        }
        command @ (IPC_SET | IPC_STAT | GETALL | SETALL) => {
            of_set(thread, &*set(number)?, command, value)
        }
        command @ (GETPID | GETVAL | GETNCNT | GETZCNT | SETVAL) => {
            let index = index as i32 as usize;
            of_one(thread, &*set(number)?, index, command, value)
        }
        _ => Err(Errno::INVAL),
    }
}

/// The commands on a semaphore.
fn of_one(thread: &Thread, set: &Set, index: usize, command: u32, value: usize) -> Answer {
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
        GETNCNT => state.waiting(index)[0],
        _ => state.waiting(index)[1],
    })
}

/// The commands on a whole set; `at` is the address of the caller's memory that is read or written.
fn of_set(thread: &Thread, set: &Set, command: u32, at: usize) -> Answer {
    match command {
        IPC_STAT => thread.write(at, told(set))?,
        IPC_SET => {
            let words = thread.read(at)?;
            set.change(|state| {
                state.rights.set(words);
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
            let values = heap::collect((0..count).map(read))?;
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

/// Writes `struct seminfo` with the limits, or with what is used; returns the last place.
fn info(thread: &Thread, command: u32, at: usize) -> Answer {
    let mut sets = SEMAPHORES.lock();
    let used = sets.all().map(|set| set.state.lock().all.len());
    let used = used.fold([0; 2], |[sets, all], count| [sets + 1, all + count]);
    // The size of changes to undo on Linux; here they have none.
    const OF_UNDO: usize = 20;
    let [sets_or_undo, all_or_undo] = match command {
        SEM_INFO => used,
        _ => [OF_UNDO, LARGEST as usize],
    };
    let last = sets.last_place();
    drop(sets);
    let total = MOST * MOST_OF_SET;
    let (map, undos, of_call) = (total, total, MOST_OPERATIONS);
    let words = [map, MOST, total, undos, MOST_OF_SET, of_call, of_call];
    let more = [sets_or_undo, LARGEST as usize, all_or_undo];
    let words = words.into_iter().chain(more);
    let bytes: Vec<[u8; 4]> = words.map(|word| (word as u32).to_le_bytes()).collect();
    thread.write_bytes(at, bytes.as_flattened())?;
    Ok(last)
}

/// `struct semid64_ds`, in words.
fn told(set: &Set) -> [usize; 13] {
    let state = set.state.lock();
    let [key, group, mode, ..] = state.rights.words(set.key);
    let [operated, changed] = state.times;
    let count = state.all.len() as u64;
    let words = [
        key, group, mode, 0, 0, 0, operated, 0, changed, 0, count, 0, 0,
    ];
    words.map(|word| word as usize)
}
