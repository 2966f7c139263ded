//! Queues of messages (System V).

use super::numbered::{IPC_INFO, IPC_NOWAIT, IPC_RMID, IPC_SET, IPC_STAT, get};
use super::{Answer, Arguments, Errno};
use crate::heap;
use crate::messages::{Choice, LONGEST, MESSAGES, MOST, Message, Queue, ROOM};
use crate::numbered::{seconds, two};
use crate::process::Thread;
use alloc::sync::Arc;

const MSG_NOERROR: u32 = 0o10000;
const MSG_EXCEPT: u32 = 0o20000;
const MSG_COPY: u32 = 0o40000;
const MSG_STAT: u32 = 11;
const MSG_INFO: u32 = 12;
const MSG_STAT_ANY: u32 = 13;
/// Bytes of a message's type, before its text.
const TYPE: usize = 8;

pub fn msgget(_: &mut Thread, [key, flags, ..]: Arguments) -> Answer {
    let (key, flags) = (key as i32, flags as u32);
    let mut queues = MESSAGES.lock();
    get(
        &mut queues,
        key,
        flags,
        |_| Ok(()),
        |_| Ok(Queue::new(key, flags)),
    )
}

fn queue(number: usize) -> Result<Arc<Queue>, Errno> {
    MESSAGES.lock().get(number as i32).cloned()
}

pub fn msgsnd(thread: &mut Thread, [number, at, bytes, flags, ..]: Arguments) -> Answer {
    let kind = thread.read::<u64>(at)? as i64;
    if bytes > LONGEST || kind < 1 {
        return Err(Errno::INVAL);
    }
    let mut text = heap::buffer(bytes)?;
    thread.read_bytes(at.wrapping_add(TYPE), &mut text)?;
    let waits = flags as u32 & IPC_NOWAIT == 0;
    queue(number)?.send(thread, Message { kind, text }, waits)?;
    Ok(0)
}

pub fn msgrcv(thread: &mut Thread, [number, at, bytes, kind, flags, _]: Arguments) -> Answer {
    let (kind, flags) = (kind as i64, flags as u32);
    let has = |bit| flags & bit != 0;
    if (bytes as isize) < 0 || has(MSG_COPY) && (has(MSG_EXCEPT) || !has(IPC_NOWAIT)) {
        return Err(Errno::INVAL);
    }
    let choice = match kind {
        0 => Choice::Any,
        ..0 => Choice::UpTo(kind.saturating_neg()),
        kind if has(MSG_EXCEPT) => Choice::Except(kind),
        kind => Choice::Of(kind),
    };
    let queue = queue(number)?;
    let Message { kind, text } = match (has(MSG_COPY), has(MSG_NOERROR)) {
        // A copy is never truncated; there are two errors for that.
        (true, false) => queue.copy(kind as usize, bytes, Errno::TOOBIG)?,
        (true, true) => queue.copy(kind as usize, bytes, Errno::INVAL)?,
        (false, false) => queue.receive(thread, choice, bytes, !has(IPC_NOWAIT))?,
        (false, true) => queue.receive(thread, choice, usize::MAX, !has(IPC_NOWAIT))?,
    };
    let text = &text[..text.len().min(bytes)];
    thread.write(at, kind as u64)?;
    thread.write_bytes(at.wrapping_add(TYPE), text)?;
    Ok(text.len())
}

pub fn msgctl(thread: &mut Thread, [number, command, at, ..]: Arguments) -> Answer {
    match command as u32 {
        IPC_RMID => {
            let removed = MESSAGES.lock().remove(number as i32)?;
            removed.remove();
            Ok(0)
        }
        IPC_SET => set(thread, number, at),
        IPC_STAT => {
            thread.write(at, told(&*queue(number)?))?;
            Ok(0)
        }
        MSG_STAT | MSG_STAT_ANY => {
            let mut queues = MESSAGES.lock();
            let (number, queue) = queues.at(number)?;
            let told = told(queue);
            drop(queues);
            thread.write(at, told)?;
            Ok(number as usize)
        }
        command @ (IPC_INFO | MSG_INFO) => info(thread, command, at),
        _ => Err(Errno::INVAL),
    }
}

/// Sets owner, mode and room by `struct msqid64_ds`.
fn set(thread: &Thread, number: usize, at: usize) -> Answer {
    let given: [usize; WORDS] = thread.read(at)?;
    let [owner, group, mode, ..] = given;
    queue(number)?.change(|state| {
        state.rights.set([owner, group, mode]);
        state.room = given[ROOM_WORD];
        state.times[2] = seconds();
    });
    Ok(0)
}

/// Writes `struct msginfo` with the limits, or with what is used; returns the last place.
fn info(thread: &Thread, command: u32, at: usize) -> Answer {
    let mut queues = MESSAGES.lock();
    let used = |queue: &mut Arc<Queue>| {
        let state = queue.state.lock();
        [1, state.messages.len(), state.bytes]
    };
    let used = queues.all().map(used);
    let used = used.fold([0; 3], |all, one| {
        core::array::from_fn(|at| all[at] + one[at])
    });
    let [pool, map, headers] = match command {
        MSG_INFO => used,
        _ => [MOST * ROOM / 1024, ROOM, ROOM],
    };
    let last = queues.last_place();
    drop(queues);
    // The bytes of a segment, and the number of segments; without meaning, since queues have none.
    let (segment, segments) = (16, 0xffff);
    let words = [pool, map, LONGEST, ROOM, MOST, segment, headers, segments];
    let words = words.map(|word| (word as u32).to_le_bytes());
    thread.write_bytes(at, words.as_flattened())?;
    Ok(last)
}

/// The words of `struct msqid64_ds`.
const WORDS: usize = 15;
/// The index of the word with the room.
const ROOM_WORD: usize = 11;

fn told(queue: &Queue) -> [usize; WORDS] {
    let state = queue.state.lock();
    let [key, group, mode, ..] = state.rights.words(queue.key);
    let [sent, received, changed] = state.times;
    let (count, bytes) = (state.messages.len() as u64, state.bytes as u64);
    let last = two((state.last[0], state.last[1]));
    let room = state.room as u64;
    let words = [
        key, group, mode, 0, 0, 0, sent, received, changed, bytes, count, room, last, 0, 0,
    ];
    words.map(|word| word as usize)
}
