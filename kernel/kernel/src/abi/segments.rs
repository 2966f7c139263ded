//! Segments of shared memory (System V).

use super::{Answer, Arguments, Errno};
use crate::process::Thread;
use crate::segments::{Segment, seconds};
use crate::system::{Request, system};
use linux_raw_sys::general::{S_IRWXG, S_IRWXO, S_IRWXU};
use machine::PAGE_SIZE;
use vm::{At, Flags, Prot};

pub const IPC_CREAT: u32 = 0o1000;
pub const IPC_EXCL: u32 = 0o2000;
const SHM_HUGETLB: u32 = 0o4000;
const SHM_RDONLY: u32 = 0o10000;
const SHM_RND: u32 = 0o20000;
const SHM_REMAP: u32 = 0o40000;
const SHM_EXEC: u32 = 0o100000;
pub const IPC_RMID: u32 = 0;
pub const IPC_SET: u32 = 1;
pub const IPC_STAT: u32 = 2;
/// Of a mode: the segment goes with its last attachment.
const SHM_DEST: u32 = 0o1000;
pub const MODE: u32 = S_IRWXU | S_IRWXG | S_IRWXO;

pub fn shmget(thread: &mut Thread, [key, bytes, flags, ..]: Arguments) -> Answer {
    let (key, flags) = (key as i32, flags as u32);
    let mut segments = system().segments.lock();
    match segments.find(key) {
        Some(_) if flags & (IPC_CREAT | IPC_EXCL) == IPC_CREAT | IPC_EXCL => Err(Errno::EXIST),
        Some(number) if bytes > segments.get(number)?.bytes => Err(Errno::INVAL),
        Some(number) => Ok(number as usize),
        None if key != 0 && flags & IPC_CREAT == 0 => Err(Errno::NOENT),
        // There are no pages of other sizes.
        None if bytes == 0 || flags & SHM_HUGETLB != 0 => Err(Errno::INVAL),
        None => {
            let number = segments.make(key, bytes, flags & MODE, thread.process.pid)?;
            Ok(number as usize)
        }
    }
}

pub fn shmat(thread: &mut Thread, [number, at, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    let has = |bit| flags & bit != 0;
    let place = match at {
        0 if has(SHM_REMAP) => return Err(Errno::INVAL),
        0 => At::Anywhere,
        at if !has(SHM_RND) && !at.is_multiple_of(PAGE_SIZE) => return Err(Errno::INVAL),
        at if has(SHM_REMAP) => At::Fixed(at & !(PAGE_SIZE - 1)),
        at => At::Free(at & !(PAGE_SIZE - 1)),
    };
    let mut segments = system().segments.lock();
    let segment = segments.get(number as i32)?;
    let prot = Prot::new(true, !has(SHM_RDONLY), has(SHM_EXEC));
    let request = Request::object(&segment.object, 0, segment.bytes, prot)?.shared();
    let read_only = Flags::NONE.with_if(has(SHM_RDONLY), Flags::READ_ONLY);
    let mapped = thread.space.map_as(&request.at(place).with(read_only));
    let mapped = mapped.map_err(|error| match error {
        vm::Error::Exists { .. } => Errno::INVAL,
        other => other.into(),
    })?;
    segment.last = thread.process.pid;
    segment.times[0] = seconds();
    Ok(mapped)
}

pub fn shmdt(thread: &mut Thread, [at, ..]: Arguments) -> Answer {
    let mut segments = system().segments.lock();
    let (segment, parts) = segments.attached(&thread.space, at).ok_or(Errno::INVAL)?;
    for part in parts {
        thread.space.unmap(part.range)?;
    }
    segment.last = thread.process.pid;
    segment.times[1] = seconds();
    segments.settle();
    Ok(0)
}

pub fn shmctl(thread: &mut Thread, [number, command, at, ..]: Arguments) -> Answer {
    // Before the lock: the memory may have to be brought.
    let new: Option<Words> = match command as u32 {
        IPC_SET => {
            let mut words = [0; WORDS];
            for (index, word) in words.iter_mut().enumerate() {
                *word = thread.read(at + index * size_of::<usize>())?;
            }
            Some(words)
        }
        _ => None,
    };
    let mut segments = system().segments.lock();
    let segment = segments.get(number as i32)?;
    match command as u32 {
        IPC_RMID => {
            segment.is_removed = true;
            segment.key = 0;
            segments.settle();
        }
        IPC_SET => {
            let [owner, group, mode, ..] = new.unwrap_or_default();
            segment.owner = ((owner >> 32) as u32, group as u32);
            segment.mode = (mode >> 32) as u32 & MODE;
            segment.times[2] = seconds();
        }
        IPC_STAT => {
            let words = told(segment).map(usize::to_le_bytes);
            drop(segments);
            thread.write_bytes(at, words.as_flattened())?;
        }
        _ => return Err(Errno::INVAL),
    }
    Ok(0)
}

/// `struct shmid_ds`, in words.
const WORDS: usize = 14;
type Words = [usize; WORDS];

fn told(segment: &Segment) -> Words {
    let two = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let mode = segment.mode | if segment.is_removed { SHM_DEST } else { 0 };
    let [attached, detached, changed] = segment.times;
    [
        two(segment.key as u32, segment.owner.0),
        // Root has made it, as all else.
        two(segment.owner.1, 0),
        two(0, mode),
        0,
        0,
        0,
        segment.bytes as u64,
        attached,
        detached,
        changed,
        two(segment.maker, segment.last),
        segment.attachments() as u64,
        0,
        0,
    ]
    .map(|word| word as usize)
}
