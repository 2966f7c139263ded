//! Steps as calls of the VM. Addresses are real ones.

use super::files::Files;
use super::map::{map, remap};
use machine::{PAGE_SIZE, Platform, VaRange};
use oracle::Call;
use oracle::address::{Address, Range};
use oracle::flags::Flags;
use oracle::outcome::{Content, Core, Outcome, Region};
use oracle::step::{self, LockFlag, SyncFlag, Transfer, Width};
use vm::{Advice, Best, Bring, Error, HEAP_START, Mappings, Prot, linux};

/// A process.
pub type Space<M> = vm::Space<Best<M>>;

/// The answer to a call.
#[derive(Clone)]
pub enum Said {
    /// A mapping is at this address.
    At(u64),
    /// Any other outcome.
    Outcome(Outcome),
}

/// The outcome of a call as an error, if the VM is not asked.
pub type Early<T> = Result<T, Outcome>;

/// The failure of a call with `errno`.
pub fn fails<T>(errno: i32) -> Early<T> {
    Err(Outcome::Errno(errno))
}

/// Rights as the VM has them.
pub fn rights(prot: step::Prot) -> Prot {
    Prot::new(prot.read, prot.write, prot.execute)
}

/// Performs a call of the process.
pub fn perform<M: Platform>(space: &Space<M>, files: &Files<M>, call: &Call) -> Said {
    let said = match call {
        Call::Map(asked) => map(space, files, asked).map(Said::At),
        Call::Remap(asked) => remap(space, asked).map(Said::At),
        _ => answer(space, files, call).map(Said::Outcome),
    };
    said.unwrap_or_else(Said::Outcome)
}

fn answer<M: Platform>(space: &Space<M>, files: &Files<M>, call: &Call) -> Early<Outcome> {
    match *call {
        Call::Unmap(it) => done(space.unmap(pages(linux::munmap, it)?)),
        Call::Protect(it, prot) => done(space.protect(pages(linux::mprotect, it)?, rights(prot))),
        Call::Advise(it, advice) => done(space.advise(pages(linux::madvise, it)?, known(advice))),
        Call::Sync(it, flags) => sync(space, it, flags),
        Call::Lock(it) => done(space.lock(pages(linux::mlock, it)?, Bring::Now)),
        Call::LockOnFault(it) => done(space.lock(pages(linux::mlock, it)?, Bring::OnFault)),
        Call::Unlock(it) => done(space.unlock(pages(linux::mlock, it)?)),
        Call::LockAll(flags) => {
            let has = |flag| flags.has(flag);
            let which = Mappings {
                current: has(LockFlag::Current),
                future: has(LockFlag::Future),
            };
            let bring = if has(LockFlag::OnFault) {
                Bring::OnFault
            } else {
                Bring::Now
            };
            done(space.lock_all(which, bring))
        }
        Call::UnlockAll => {
            space.unlock_all();
            Ok(Outcome::Done)
        }
        Call::InCore(it) => in_core(space, it),
        Call::Break(bytes) => {
            let moved = space.set_break(HEAP_START + bytes as usize);
            moved.map_err(said).map(|()| Outcome::Value(bytes))
        }
        Call::Replace => {
            // SAFETY: the other tasks wait for this step to end.
            unsafe { space.exec_alone() };
            Ok(Outcome::Done)
        }
        Call::Load(address, Width::Word) => accessed(space.load(address.offset as usize)),
        Call::Load(address, Width::Byte) => {
            let mut byte = [0];
            let copied = space.copy_in(address.offset as usize, &mut byte);
            accessed(copied.map(|()| byte[0].into()))
        }
        Call::Store(address, Width::Word, value) => {
            stored(space.store(address.offset as usize, value))
        }
        Call::Store(address, Width::Byte, value) => {
            stored(space.copy_out(address.offset as usize, &[value as u8]))
        }
        Call::Truncate(file, bytes) => done(files.file(file).set_size(bytes)),
        Call::Read(transfer) => read(files, transfer),
        Call::Write(transfer, byte) => {
            let Transfer {
                file,
                offset,
                bytes,
            } = transfer;
            let written = files.file(file).write(offset, &vec![byte; bytes as usize]);
            value(written.map(|bytes| bytes as u64))
        }
        Call::Regions(it) => Ok(Outcome::Regions(regions(space, files, it))),
        Call::Dump(it) => dump(space, it).map(Outcome::Pages),
        Call::Map(_) | Call::Remap(_) | Call::Fork(_) | Call::Exit | Call::Scarce(_) => {
            fails(libc::ENOSYS)
        }
    }
}

/// The pages of a call, as `checked` finds them. A call without pages succeeds.
fn pages(
    checked: fn(usize, usize) -> Result<Option<VaRange>, Error>,
    asked: Range,
) -> Early<VaRange> {
    let range = checked(asked.start.offset as usize, asked.bytes as usize);
    range.map_err(said)?.ok_or(Outcome::Done)
}

fn sync<M: Platform>(space: &Space<M>, asked: Range, flags: Flags<SyncFlag>) -> Early<Outcome> {
    if flags.has(SyncFlag::Async) && flags.has(SyncFlag::Sync) {
        return fails(libc::EINVAL);
    }
    let range = pages(linux::msync, asked)?;
    if flags.has(SyncFlag::Invalidate) {
        space.invalidate(range).map_err(said)?;
    }
    done(space.sync(range))
}

fn in_core<M: Platform>(space: &Space<M>, asked: Range) -> Early<Outcome> {
    let range = match pages(linux::mincore, asked) {
        Err(Outcome::Done) => return Ok(Outcome::Core(vec![])),
        range => range?,
    };
    let core = |here| if here { Core::In } else { Core::Out };
    let pages = space.incore(range).map_err(said)?;
    Ok(Outcome::Core(pages.into_iter().map(core).collect()))
}

fn read<M: Platform>(files: &Files<M>, transfer: Transfer) -> Early<Outcome> {
    let mut bytes = vec![0; transfer.bytes as usize];
    let read = files.file(transfer.file).read(transfer.offset, &mut bytes);
    bytes.truncate(read.map_err(said)?);
    Ok(Outcome::Bytes(bytes))
}

/// The mappings in the pages that a range touches, with real addresses.
fn regions<M: Platform>(space: &Space<M>, files: &Files<M>, asked: Range) -> Vec<Region> {
    let page = PAGE_SIZE as u64;
    let first = asked.start.offset / page * page;
    let end = (asked.start.offset + asked.bytes).next_multiple_of(page);
    let mut regions: Vec<Region> = Vec::new();
    for mapped in space.regions().expect("regions") {
        let start = (mapped.range.start as u64).max(first);
        let end = (mapped.range.end as u64).min(end);
        if start >= end {
            continue;
        }
        let cut = (start - mapped.range.start as u64) / page;
        let file = mapped.object.and_then(|object| {
            let first = object.offset / page;
            Some((files.named(object.id)?, first + cut))
        });
        let (prot, offset) = (mapped.prot(), start);
        let next = Region {
            start: Address {
                offset,
                ..asked.start
            },
            pages: (end - start) / page,
            prot: step::Prot::new(prot.reads(), prot.writes(), prot.executes()),
            shared: mapped.flags.has(vm::Flags::SHARED),
            file,
        };
        let last = regions.last_mut();
        if !last.is_some_and(|last| last.absorb(&next)) {
            regions.push(next);
        }
    }
    regions
}

/// Reads pages word by word.
fn dump<M: Platform>(space: &Space<M>, asked: Range) -> Early<Vec<Content>> {
    let start = asked.start.offset as usize;
    let page = |page: usize| {
        let words = (0..PAGE_SIZE).step_by(size_of::<u64>());
        let words = words.map(|at| space.load(start + page * PAGE_SIZE + at));
        match words.collect::<Result<Vec<_>, _>>() {
            Ok(words) => {
                let bytes: Vec<_> = words.into_iter().flat_map(u64::to_le_bytes).collect();
                Ok(Content::Bytes(Content::of_page(&bytes)))
            }
            Err(Error::Bus { .. }) => Ok(Content::Bus),
            Err(Error::Segv(_)) => Ok(Content::Segv),
            Err(error) => Err(raised(error)),
        }
    };
    // All pages are read, also behind one that is missing: stacks may grow.
    let pages: Vec<_> = (0..asked.bytes as usize / PAGE_SIZE).map(page).collect();
    pages.into_iter().collect()
}

fn done(result: Result<(), Error>) -> Early<Outcome> {
    result.map_err(said).map(|()| Outcome::Done)
}

fn value(result: Result<u64, Error>) -> Early<Outcome> {
    result.map_err(said).map(Outcome::Value)
}

/// The outcome that a kernel makes of a call's error.
pub fn said(error: Error) -> Outcome {
    match error {
        Error::OutOfMemory(_) | Error::Io(_) => Outcome::Refused(error.to_string()),
        error => Outcome::Errno(error.errno()),
    }
}

fn stored(result: Result<(), Error>) -> Early<Outcome> {
    result.map_err(raised).map(|()| Outcome::Done)
}

fn accessed(result: Result<u64, Error>) -> Early<Outcome> {
    result.map_err(raised).map(Outcome::Value)
}

/// The outcome that a kernel makes of an access's error: a signal.
fn raised(error: Error) -> Outcome {
    match error {
        Error::Segv(_) => Outcome::Segv,
        Error::Bus { .. } => Outcome::Bus,
        error => said(error),
    }
}

fn known(advice: step::Advice) -> Advice {
    match advice {
        step::Advice::Normal => Advice::Normal,
        step::Advice::Random => Advice::Random,
        step::Advice::Sequential => Advice::Sequential,
        step::Advice::WillNeed => Advice::WillNeed,
        step::Advice::DontNeed => Advice::DontNeed,
        step::Advice::Free => Advice::Free,
        step::Advice::Remove => Advice::Remove,
        step::Advice::DontFork => Advice::DontFork,
        step::Advice::DoFork => Advice::DoFork,
        step::Advice::WipeOnFork => Advice::WipeOnFork,
        step::Advice::KeepOnFork => Advice::KeepOnFork,
        step::Advice::HugePage => Advice::Huge,
        step::Advice::NoHugePage => Advice::NoHuge,
        step::Advice::Cold => Advice::Cold,
        step::Advice::PageOut => Advice::PageOut,
        step::Advice::PopulateRead => Advice::PopulateRead,
        step::Advice::PopulateWrite => Advice::PopulateWrite,
    }
}
