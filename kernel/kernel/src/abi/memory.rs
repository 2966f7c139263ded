//! Memory: the calls that go straight to the VM.

use super::{Answer, Arguments, Errno};
use crate::fs::{Device, Kind, OpenFile};
use crate::heap;
use crate::process::Thread;
use crate::system::{ObjectRef, Request, Space, system};
use linux_raw_sys::general::*;
use machine::{PAGE_SIZE, VaRange};
use vm::{Advice, At, Bring, Flags, HEAP_START, HIGHEST, LOWEST, Mappings, Move, Prot};

fn prot(bits: usize) -> Result<Prot, Errno> {
    let bits = bits as u32;
    if bits & !(PROT_READ | PROT_WRITE | PROT_EXEC | PROT_SEM) != 0 {
        return Err(Errno::INVAL);
    }
    let has = |bit| bits & bit != 0;
    Ok(Prot::new(has(PROT_READ), has(PROT_WRITE), has(PROT_EXEC)))
}

/// `bytes` in whole pages; `None` if that overflows.
fn whole_pages(bytes: usize) -> Option<usize> {
    bytes.checked_next_multiple_of(PAGE_SIZE)
}

/// The pages of `bytes` from `start` on, if they are any: the error `wraps` if there is no such
/// range, and `beyond` if it ends where nothing can be mapped.
fn pages(
    start: usize,
    bytes: usize,
    wraps: Errno,
    beyond: Errno,
) -> Result<Option<VaRange>, Errno> {
    if !start.is_multiple_of(PAGE_SIZE) {
        return Err(Errno::INVAL);
    }
    if bytes == 0 {
        return Ok(None);
    }
    let end = whole_pages(bytes).and_then(|bytes| start.checked_add(bytes));
    match end.ok_or(wraps)? {
        end if end > HIGHEST => Err(beyond),
        end => Ok(Some(VaRange { start, end })),
    }
}

/// The pages of a call that fails where nothing is mapped, as it is at the lowest addresses.
fn mapped_pages(start: usize, bytes: usize, wraps: Errno) -> Result<Option<VaRange>, Errno> {
    match pages(start, bytes, wraps, Errno::NOMEM)? {
        Some(range) if range.start < LOWEST => Err(Errno::NOMEM),
        range => Ok(range),
    }
}

/// Returns true if a length is so great that Linux takes it for 0 in whole pages.
fn wraps_to_nothing(bytes: usize) -> bool {
    whole_pages(bytes).is_none()
}

/// The most bytes of a file.
const MOST_SIZE: usize = isize::MAX as usize;

/// The flags that `MAP_SHARED_VALIDATE` accepts, even if they have no effect.
const KNOWN: u32 = MAP_TYPE
    | MAP_FIXED
    | MAP_ANONYMOUS
    | MAP_32BIT
    | MAP_GROWSDOWN
    | MAP_DENYWRITE
    | MAP_EXECUTABLE
    | MAP_LOCKED
    | MAP_NORESERVE
    | MAP_POPULATE
    | MAP_NONBLOCK
    | MAP_STACK
    | MAP_HUGETLB
    | MAP_UNINITIALIZED;

pub fn mmap(thread: &mut Thread, [at, bytes, rights, flags, fd, offset]: Arguments) -> Answer {
    let flags = flags as u32;
    let has = |bits| flags & bits != 0;
    if !offset.is_multiple_of(PAGE_SIZE) {
        return Err(Errno::INVAL);
    }
    if heap::is_short() {
        return Err(Errno::NOMEM);
    }
    let file = if has(MAP_ANONYMOUS) {
        None
    } else {
        Some(thread.file(fd)?)
    };
    let prot = prot(rights)?;
    let is_shared = is_shared(flags)?;
    let fixed = has(MAP_FIXED) || has(MAP_FIXED_NOREPLACE);
    if bytes == 0 {
        return Err(Errno::INVAL);
    }
    let whole = whole_pages(bytes).filter(|&whole| whole <= HIGHEST);
    let whole = whole.ok_or(Errno::NOMEM)?;
    if fixed && at.checked_add(whole).is_none_or(|end| end > HIGHEST) {
        return Err(Errno::NOMEM);
    }
    let place = match at {
        _ if has(MAP_FIXED_NOREPLACE) => At::Free(at),
        _ if has(MAP_FIXED) => At::Fixed(at),
        0 => At::Anywhere,
        _ => At::Hint(at & !(PAGE_SIZE - 1)),
    };
    let may_write = file.as_ref().is_none_or(|file| file.writes());
    if file.as_ref().is_some_and(|file| !file.reads()) || is_shared && prot.writes() && !may_write {
        return Err(Errno::ACCES);
    }
    let wanted = Flags::NONE
        .with_if(has(MAP_NORESERVE), Flags::NO_RESERVE)
        .with_if(has(MAP_GROWSDOWN), Flags::GROWS_DOWN)
        .with_if(has(MAP_LOCKED), Flags::LOCKED)
        .with_if(is_shared && !may_write, Flags::READ_ONLY);
    let object;
    let request = match content(file.as_deref(), whole, is_shared)? {
        None => Request::anonymous(bytes, prot),
        // A file has no bytes there.
        Some((_, true)) if offset.checked_add(whole).is_none_or(|end| end > MOST_SIZE) => {
            return Err(Errno::OVERFLOW);
        }
        Some((of, is_file)) => {
            object = of;
            Request::object(
                &object,
                if is_file { offset as u64 } else { 0 },
                bytes,
                prot,
            )?
        }
    };
    let request = request.at(place).with(wanted);
    let request = if is_shared { request.shared() } else { request };
    let request = if has(MAP_POPULATE) {
        request.populated()
    } else {
        request
    };
    if has(MAP_32BIT) && matches!(place, At::Anywhere | At::Hint(_)) {
        map_low(&thread.space, whole, request)
    } else {
        Ok(thread.space.map_as(&request)?)
    }
}

/// Returns true if a mapping with these flags is shared.
fn is_shared(flags: u32) -> Result<bool, Errno> {
    match flags & MAP_TYPE {
        MAP_PRIVATE => Ok(false),
        MAP_SHARED => Ok(true),
        MAP_SHARED_VALIDATE if flags & MAP_ANONYMOUS != 0 => Err(Errno::INVAL),
        MAP_SHARED_VALIDATE if flags & !KNOWN != 0 => Err(Errno::OPNOTSUPP),
        MAP_SHARED_VALIDATE => Ok(true),
        _ => Err(Errno::INVAL),
    }
}

/// The content of a mapping of `bytes`, whole pages: an object, and true if it is a file; `None`
/// for private memory of zeroes.
fn content(
    file: Option<&OpenFile>,
    bytes: usize,
    is_shared: bool,
) -> Result<Option<(ObjectRef, bool)>, Errno> {
    if let Some(file) = file {
        match &file.inode().kind {
            Kind::File(object) => return Ok(Some((object.clone(), true))),
            Kind::Device(Device::Zero) => {}
            _ => return Err(Errno::NODEV),
        }
    }
    if !is_shared {
        return Ok(None);
    }
    let object = system().vm.shared_memory(bytes as u64)?;
    Ok(Some((object, false)))
}

/// Maps `bytes`, whole pages, below 2 GiB (`MAP_32BIT`).
fn map_low(space: &Space, bytes: usize, request: Request) -> Answer {
    const LOW: VaRange = VaRange {
        start: 1 << 30,
        end: 1 << 31,
    };
    let mut request = request;
    loop {
        let mut free = LOW.start;
        for region in space.regions() {
            if region.range.start < LOW.end && region.range.start.saturating_sub(free) < bytes {
                free = free.max(region.range.end);
            }
        }
        if LOW.end.saturating_sub(free) < bytes {
            return Err(Errno::NOMEM);
        }
        request = request.at(At::Free(free));
        match space.map_as(&request) {
            // Another thread has mapped there first.
            Err(vm::Error::Exists { .. }) => {}
            mapped => return Ok(mapped?),
        }
    }
}

pub fn munmap(thread: &mut Thread, [start, bytes, ..]: Arguments) -> Answer {
    if bytes == 0 {
        return Err(Errno::INVAL);
    }
    if let Some(VaRange { start, end }) = pages(start, bytes, Errno::INVAL, Errno::INVAL)? {
        // Nothing is mapped below.
        let start = start.max(LOWEST);
        if start < end {
            thread.space.unmap(VaRange { start, end })?;
        }
    }
    Ok(0)
}

pub fn mprotect(thread: &mut Thread, [start, bytes, rights, ..]: Arguments) -> Answer {
    let prot = prot(rights)?;
    if let Some(range) = mapped_pages(start, bytes, Errno::NOMEM)? {
        thread.space.protect(range, prot)?;
    }
    Ok(0)
}

pub fn madvise(thread: &mut Thread, [start, bytes, advice, ..]: Arguments) -> Answer {
    let advice = match advice as u32 {
        MADV_NORMAL => Advice::Normal,
        MADV_RANDOM => Advice::Random,
        MADV_SEQUENTIAL => Advice::Sequential,
        MADV_WILLNEED => Advice::WillNeed,
        MADV_DONTNEED => Advice::DontNeed,
        MADV_FREE => Advice::Free,
        MADV_REMOVE => Advice::Remove,
        MADV_COLD => Advice::Cold,
        MADV_PAGEOUT => Advice::PageOut,
        MADV_DONTFORK => Advice::DontFork,
        MADV_DOFORK => Advice::DoFork,
        MADV_WIPEONFORK => Advice::WipeOnFork,
        MADV_KEEPONFORK => Advice::KeepOnFork,
        MADV_HUGEPAGE => Advice::Huge,
        MADV_NOHUGEPAGE => Advice::NoHuge,
        MADV_POPULATE_READ => Advice::PopulateRead,
        MADV_POPULATE_WRITE => Advice::PopulateWrite,
        _ => return Err(Errno::INVAL),
    };
    let Some(range) = mapped_pages(start, bytes, Errno::INVAL)? else {
        return Ok(0);
    };
    let space = &thread.space;
    // This ends at the first hole.
    let populates = matches!(advice, Advice::PopulateRead | Advice::PopulateWrite);
    match space.advise(range, advice) {
        Err(vm::Error::NotMapped { .. }) if !populates => advise_parts(space, range, advice),
        advised => Ok(advised.map(|()| 0)?),
    }
}

/// Applies advice to the mapped parts of a range; a hole in it is an error nevertheless.
fn advise_parts(space: &Space, range: VaRange, advice: Advice) -> Answer {
    for region in space.regions() {
        let part = VaRange {
            start: region.range.start.max(range.start),
            end: region.range.end.min(range.end),
        };
        if part.start < part.end {
            match space.advise(part, advice) {
                // Another thread has unmapped it meanwhile.
                Err(vm::Error::NotMapped { .. }) => {}
                advised => advised?,
            }
        }
    }
    Err(Errno::NOMEM)
}

pub fn mremap(thread: &mut Thread, [start, old, new, flags, to, _]: Arguments) -> Answer {
    let flags = flags as u32;
    let has = |bit| flags & bit != 0;
    if flags & !(MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP) != 0 {
        return Err(Errno::INVAL);
    }
    let leaves = has(MREMAP_DONTUNMAP);
    let place = match (has(MREMAP_MAYMOVE), has(MREMAP_FIXED), leaves) {
        (false, false, false) => Move::Never,
        (true, false, false) => Move::IfNeeded,
        (true, true, false) => Move::To(to),
        (true, false, true) => Move::Leaving,
        (true, true, true) => Move::LeavingTo(to),
        _ => return Err(Errno::INVAL),
    };
    let old = whole_pages(old);
    let target = if has(MREMAP_FIXED) { to } else { 0 };
    refuse_move(start, old, new, target, has(MREMAP_FIXED) || leaves)?;
    if leaves && old != whole_pages(new) {
        return Err(Errno::INVAL);
    }
    let end = old.and_then(|old| start.checked_add(old));
    let end = end.unwrap_or(usize::MAX);
    Ok(thread.space.remap(VaRange { start, end }, new, place)?)
}

/// Refuses what Linux refuses before it looks up mappings: a new length or a target that cannot be,
/// and a target that overlaps the old pages. One that is not given counts as 0.
fn refuse_move(
    start: usize,
    old: Option<usize>,
    new: usize,
    target: usize,
    has_target: bool,
) -> Result<(), Errno> {
    let new = whole_pages(new).unwrap_or(0);
    let is_beyond = target.checked_add(new).is_none_or(|end| end > HIGHEST);
    // A length that wraps around overlaps nothing.
    let end = start.wrapping_add(old.unwrap_or(0));
    let overlaps = has_target && end > target && target.wrapping_add(new) > start;
    if new == 0 || is_beyond || overlaps || !target.is_multiple_of(PAGE_SIZE) {
        return Err(Errno::INVAL);
    }
    Ok(())
}

pub fn msync(thread: &mut Thread, [start, bytes, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    let has = |bit| flags & bit != 0;
    if flags & !(MS_ASYNC | MS_SYNC | MS_INVALIDATE) != 0 || has(MS_ASYNC) && has(MS_SYNC) {
        return Err(Errno::INVAL);
    }
    let bytes = if wraps_to_nothing(bytes) { 0 } else { bytes };
    let Some(range) = mapped_pages(start, bytes, Errno::NOMEM)? else {
        return Ok(0);
    };
    if has(MS_INVALIDATE) {
        thread.space.invalidate(range)?;
    }
    thread.space.sync(range)?;
    Ok(0)
}

pub fn mincore(thread: &mut Thread, [start, bytes, to, ..]: Arguments) -> Answer {
    let Some(range) = mapped_pages(start, bytes, Errno::NOMEM)? else {
        // Linux checks the address all the same.
        return if start > HIGHEST {
            Err(Errno::NOMEM)
        } else {
            Ok(0)
        };
    };
    let pages = thread.space.incore(range)?;
    let pages: alloc::vec::Vec<u8> = pages.into_iter().map(u8::from).collect();
    thread.write_bytes(to, &pages)?;
    Ok(0)
}

pub fn mlock(thread: &mut Thread, [start, bytes, ..]: Arguments) -> Answer {
    mlock2(thread, [start, bytes, 0, 0, 0, 0])
}

pub fn mlock2(thread: &mut Thread, [start, bytes, flags, ..]: Arguments) -> Answer {
    let bring = match flags as u32 {
        0 => Bring::Now,
        MLOCK_ONFAULT => Bring::OnFault,
        _ => return Err(Errno::INVAL),
    };
    if let Some(range) = touched_pages(start, bytes)? {
        thread.space.lock(range, bring)?;
    }
    Ok(0)
}

pub fn munlock(thread: &mut Thread, [start, bytes, ..]: Arguments) -> Answer {
    if let Some(range) = touched_pages(start, bytes)? {
        thread.space.unlock(range)?;
    }
    Ok(0)
}

/// The pages that the bytes touch.
fn touched_pages(start: usize, bytes: usize) -> Result<Option<VaRange>, Errno> {
    let within = start % PAGE_SIZE;
    match bytes.wrapping_add(within) {
        bytes if wraps_to_nothing(bytes) => Ok(None),
        bytes => mapped_pages(start - within, bytes, Errno::INVAL),
    }
}

pub fn mlockall(thread: &mut Thread, [flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    let has = |bit| flags & bit != 0;
    if !has(MCL_CURRENT | MCL_FUTURE) || flags & !(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0 {
        return Err(Errno::INVAL);
    }
    let space = &thread.space;
    let which = Mappings {
        current: has(MCL_CURRENT),
        future: has(MCL_FUTURE),
    };
    let bring = if has(MCL_ONFAULT) {
        Bring::OnFault
    } else {
        Bring::Now
    };
    space.lock_all(which, bring)?;
    Ok(0)
}

pub fn munlockall(thread: &mut Thread, _: Arguments) -> Answer {
    thread.space.unlock_all();
    Ok(0)
}

/// The heap's end, moved if that is possible.
pub fn brk(thread: &mut Thread, [end, ..]: Arguments) -> Answer {
    let space = &thread.space;
    // The requested end, though another thread may have moved it again; the current one, if
    // refused.
    if end >= HEAP_START && space.set_break(end).is_ok() {
        Ok(end)
    } else {
        Ok(space.current_break())
    }
}
