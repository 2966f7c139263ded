//! Segments of shared memory (System V).

use super::numbered::{IPC_INFO, IPC_RMID, IPC_SET, IPC_STAT, get};
use super::{Answer, Arguments, Errno};
use crate::numbered::{seconds, two};
use crate::process::Thread;
use crate::segments::{MOST, SEGMENTS, Segment};
use crate::system::Request;
use machine::PAGE_SIZE;
use vm::{At, Flags, Prot};

const SHM_HUGETLB: u32 = 0o4000;
const SHM_RDONLY: u32 = 0o10000;
const SHM_RND: u32 = 0o20000;
const SHM_REMAP: u32 = 0o40000;
const SHM_EXEC: u32 = 0o100000;
const SHM_STAT: u32 = 13;
const SHM_INFO: u32 = 14;
const SHM_STAT_ANY: u32 = 15;
/// Flag of a mode: the segment is dropped with its last attachment.
const SHM_DEST: u32 = 0o1000;

pub fn shmget(thread: &mut Thread, [key, bytes, flags, ..]: Arguments) -> Answer {
    let (key, flags) = (key as i32, flags as u32);
    let mut segments = SEGMENTS.lock();
    let fits = |segment: &Segment| {
        if bytes > segment.bytes {
            Err(Errno::INVAL)
        } else {
            Ok(())
        }
    };
    get(&mut segments, key, flags, fits, |_| match bytes {
        // There are no pages of other sizes.
        _ if bytes == 0 || flags & SHM_HUGETLB != 0 => Err(Errno::INVAL),
        bytes => Segment::new(key, bytes, flags, thread.process.pid),
    })
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
    let mut segments = SEGMENTS.lock();
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
    let mut segments = SEGMENTS.lock();
    let (segment, parts) = segments.attached(&thread.space, at)?;
    for part in parts {
        thread.space.unmap(part.range)?;
    }
    segment.last = thread.process.pid;
    segment.times[1] = seconds();
    segments.settle();
    Ok(0)
}

pub fn shmctl(thread: &mut Thread, [number, command, at, ..]: Arguments) -> Answer {
    // Read before the lock, because the memory may have to be brought in.
    let new: Words = match command as u32 {
        IPC_SET => thread.read(at)?,
        _ => [0; _],
    };
    let mut segments = SEGMENTS.lock();
    match command as u32 {
        IPC_RMID => {
            let segment = segments.get(number as i32)?;
            segment.is_removed = true;
            segment.key = 0;
            segments.settle();
        }
        IPC_SET => {
            let [owner, group, mode, ..] = new;
            let segment = segments.get(number as i32)?;
            segment.rights.set([owner, group, mode]);
            segment.times[2] = seconds();
        }
        command @ (IPC_STAT | SHM_STAT | SHM_STAT_ANY) => {
            let (answer, segment) = match command {
                IPC_STAT => (0, segments.get(number as i32)?),
                _ => segments.at(number as i32 as usize)?,
            };
            let told = told(segment);
            drop(segments);
            thread.write(at, told)?;
            return Ok(answer as usize);
        }
        IPC_INFO => {
            // Written below: the most and the fewest bytes, the most segments in all and of a
            // process, the most pages.
            const LARGEST: usize = usize::MAX - (1 << 24);
            let last = segments.last_place();
            drop(segments);
            thread.write(at, [LARGEST, 1, MOST, MOST, LARGEST, 0, 0, 0, 0])?;
            return Ok(last);
        }
        SHM_INFO => {
            let used = segments.all().fold([0; 2], |[count, pages], segment| {
                [count + 1, pages + segment.bytes.div_ceil(PAGE_SIZE)]
            });
            let last = segments.last_place();
            drop(segments);
            let [count, pages] = used;
            // The pages in memory and in swap space are not counted.
            thread.write(at, [count, pages, 0, 0, 0, 0])?;
            return Ok(last);
        }
        _ => return Err(Errno::INVAL),
    }
    Ok(0)
}

/// `struct shmid_ds`, in words.
const WORDS: usize = 14;
type Words = [usize; WORDS];

fn told(segment: &Segment) -> Words {
    let [key, group, mode, ..] = segment.rights.words(segment.key);
    let removed = if segment.is_removed { SHM_DEST } else { 0 };
    let [attached, detached, changed] = segment.times;
    [
        key,
        group,
        mode | two((0, removed)),
        0,
        0,
        0,
        segment.bytes as u64,
        attached,
        detached,
        changed,
        two((segment.maker, segment.last)),
        segment.attachments() as u64,
        0,
        0,
    ]
    .map(|word| word as usize)
}
