//! Memory: the calls that go straight to the VM.

use super::{Answer, Arguments, Errno};
use crate::fs::{Device, Kind, OpenFile};
use crate::heap;
use crate::process::Thread;
use crate::system::{ObjectRef, Request, Space, system};
use linux_raw_sys::general::*;
use machine::{PAGE_SIZE, VaRange};
use vm::{Advice, At, Bring, Flags, HEAP_START, Mappings, Move, Prot, linux};

fn prot(bits: usize) -> Result<Prot, Errno> {
    let bits = bits as u32;
    if bits & !(PROT_READ | PROT_WRITE | PROT_EXEC | PROT_SEM) != 0 {
        return Err(Errno::INVAL);
    }
    let has = |bit| bits & bit != 0;
    Ok(Prot::new(has(PROT_READ), has(PROT_WRITE), has(PROT_EXEC)))
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
    let place = match at {
        _ if has(MAP_FIXED_NOREPLACE) => At::Free(at),
        _ if has(MAP_FIXED) => At::Fixed(at),
        0 => At::Anywhere,
        _ => At::Hint(at & !(PAGE_SIZE - 1)),
    };
    let whole = linux::mmap(place, bytes)?;
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
        for region in space.regions()? {
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
    if let Some(range) = linux::munmap(start, bytes)? {
        thread.space.unmap(range)?;
    }
    Ok(0)
}

pub fn mprotect(thread: &mut Thread, [start, bytes, rights, ..]: Arguments) -> Answer {
    let prot = prot(rights)?;
    if let Some(range) = linux::mprotect(start, bytes)? {
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
        MADV_DONTDUMP => Advice::DontDump,
        MADV_DODUMP => Advice::DoDump,
        MADV_HUGEPAGE => Advice::Huge,
        MADV_NOHUGEPAGE => Advice::NoHuge,
        MADV_POPULATE_READ => Advice::PopulateRead,
        MADV_POPULATE_WRITE => Advice::PopulateWrite,
        _ => return Err(Errno::INVAL),
    };
    let Some(range) = linux::madvise(start, bytes)? else {
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
    for region in space.regions()? {
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
    let place = match (
        has(MREMAP_MAYMOVE),
        has(MREMAP_FIXED),
        has(MREMAP_DONTUNMAP),
    ) {
        (false, false, false) => Move::Never,
        (true, false, false) => Move::IfNeeded,
        (true, true, false) => Move::To(to),
        (true, false, true) => Move::Leaving,
        (true, true, true) => Move::LeavingTo(to),
        _ => return Err(Errno::INVAL),
    };
    let (range, bytes) = linux::mremap(start, old, new, place)?;
    Ok(thread.space.remap(range, bytes, place)?)
}

pub fn msync(thread: &mut Thread, [start, bytes, flags, ..]: Arguments) -> Answer {
    let flags = flags as u32;
    let has = |bit| flags & bit != 0;
    if flags & !(MS_ASYNC | MS_SYNC | MS_INVALIDATE) != 0 || has(MS_ASYNC) && has(MS_SYNC) {
        return Err(Errno::INVAL);
    }
    let Some(range) = linux::msync(start, bytes)? else {
        return Ok(0);
    };
    if has(MS_INVALIDATE) {
        thread.space.invalidate(range)?;
    }
    thread.space.sync(range)?;
    Ok(0)
}

pub fn mincore(thread: &mut Thread, [start, bytes, to, ..]: Arguments) -> Answer {
    let Some(range) = linux::mincore(start, bytes)? else {
        return Ok(0);
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
    if let Some(range) = linux::mlock(start, bytes)? {
        thread.space.lock(range, bring)?;
    }
    Ok(0)
}

pub fn munlock(thread: &mut Thread, [start, bytes, ..]: Arguments) -> Answer {
    if let Some(range) = linux::mlock(start, bytes)? {
        thread.space.unlock(range)?;
    }
    Ok(0)
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
