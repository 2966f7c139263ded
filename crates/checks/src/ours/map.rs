//! `mmap` and `mremap` as calls of the VM.

use super::calls::{Early, Space, fails, rights, said};
use super::files::Files;
use machine::{PAGE_SIZE, Platform};
use oracle::step::{Backing, Map, MapFlag, Remap, RemapFlag, Where};
use vm::{At, Flags, Move, Request, linux};

const PAGE: u64 = PAGE_SIZE as u64;

pub fn map<M: Platform>(space: &Space<M>, files: &Files<M>, asked: &Map) -> Early<u64> {
    let offset = match asked.backing {
        Backing::File { offset, .. } => offset,
        Backing::Anonymous => 0,
    };
    if !offset.is_multiple_of(PAGE) {
        return fails(libc::EINVAL);
    }
    let at = match asked.at {
        Where::Fixed(at) => At::Fixed(at.offset as usize),
        Where::FixedNoReplace(at) => At::Free(at.offset as usize),
        Where::Hint(at, _) => At::Hint(at.offset as usize),
        Where::Anywhere(_) => At::Anywhere,
    };
    let bytes = linux::mmap(at, asked.bytes as usize).map_err(said)? as u64;
    let prot = rights(asked.prot);
    let length = asked.bytes as usize;
    let memory = match asked.backing {
        Backing::File { file, .. } => Some(files.file(file).clone()),
        Backing::Anonymous if asked.shared => Some(files.shared(bytes).map_err(said)?),
        Backing::Anonymous => None,
    };
    let is_file = asked.backing != Backing::Anonymous;
    if is_file && too_far(offset, bytes) {
        return fails(libc::EOVERFLOW);
    }
    let request = match &memory {
        Some(memory) => Request::object(memory, offset, length, prot).map_err(said)?,
        None => Request::anonymous(length, prot),
    };
    let mut request = request.at(at).with(flags(asked));
    if asked.shared {
        request = request.shared();
    }
    if asked.flags.has(MapFlag::Populate) {
        request = request.populated();
    }
    space.map_as(&request).map(|at| at as u64).map_err(said)
}

fn flags(asked: &Map) -> Flags {
    let read_only = matches!(
        asked.backing,
        Backing::File {
            read_only: true,
            ..
        }
    );
    Flags::NONE
        .with_if(asked.flags.has(MapFlag::NoReserve), Flags::NO_RESERVE)
        .with_if(asked.flags.has(MapFlag::GrowsDown), Flags::GROWS_DOWN)
        .with_if(asked.flags.has(MapFlag::Locked), Flags::LOCKED)
        .with_if(read_only && asked.shared, Flags::READ_ONLY)
}

/// Returns true if no file can be this long.
fn too_far(offset: u64, bytes: u64) -> bool {
    let end = offset.checked_add(bytes);
    end.is_none_or(|end| end > i64::MAX as u64)
}

pub fn remap<M: Platform>(space: &Space<M>, asked: &Remap) -> Early<u64> {
    let may_move = asked.flags.has(RemapFlag::MayMove);
    let leaves = asked.flags.has(RemapFlag::DontUnmap);
    if !may_move && (leaves || asked.fixed.is_some()) {
        return fails(libc::EINVAL);
    }
    let place = match asked.fixed.map(|at| at.offset as usize) {
        Some(at) if leaves => Move::LeavingTo(at),
        Some(at) => Move::To(at),
        None if leaves => Move::Leaving,
        None if may_move => Move::IfNeeded,
        None => Move::Never,
    };
    let (start, bytes) = (asked.old.start.offset as usize, asked.old.bytes as usize);
    let moved = linux::mremap(start, bytes, asked.bytes as usize, place);
    let remapped = moved.and_then(|(old, new)| space.remap(old, new, place));
    remapped.map(|at| at as u64).map_err(said)
}
