//! Steps as system calls.

use super::area::{Command, Slot};
use super::files::Files;
use crate::address::Range;
use crate::flags::{Flag, Flags};
use crate::places::Places;
use crate::step::{
    Advice, Backing, Call, LockFlag, Map, MapFlag, ProcessId, Prot, Remap, RemapFlag, Step,
    SyncFlag, Transfer, Where,
};

/// The context needed to translate a step for a process.
pub struct Terms<'a> {
    pub places: &'a Places,
    pub files: &'a Files,
    pub slot: &'a Slot,
    pub process: ProcessId,
}

impl Terms<'_> {
    /// The command for a step; `None` for steps that are not a single system call or access.
    pub fn command(&self, step: &Step) -> Option<Command> {
        let at = |address| self.places.resolve(self.process, address);
        let range = |range: Range| (at(range.start), range.bytes);
        Some(match step.call {
            Call::Map(ref map) => self.map(map),
            Call::Unmap(it) => on(libc::SYS_munmap, range(it), 0),
            Call::Protect(it, rights) => on(libc::SYS_mprotect, range(it), prot(rights)),
            Call::Remap(ref remap) => self.remap(remap),
            Call::Advise(it, advice) => on(libc::SYS_madvise, range(it), value(advice)),
            Call::Sync(it, flags) => on(libc::SYS_msync, range(it), bits(flags, sync_bit)),
            Call::Lock(it) => on(libc::SYS_mlock, range(it), 0),
            Call::LockOnFault(it) => on(libc::SYS_mlock2, range(it), libc::MLOCK_ONFAULT.into()),
            Call::Unlock(it) => on(libc::SYS_munlock, range(it), 0),
            Call::LockAll(flags) => call(libc::SYS_mlockall, [bits(flags, lock_bit), 0, 0]),
            Call::UnlockAll => call(libc::SYS_munlockall, [0; 3]),
            Call::InCore(it) => on(libc::SYS_mincore, range(it), self.buffer()),
            Call::Break(bytes) => {
                let start = crate::address::Address {
                    place: crate::address::Origin::Heap,
                    offset: bytes,
                };
                call(libc::SYS_brk, [at(start), 0, 0])
            }
            Call::Load(address, width) => Command::Load(at(address), width.bytes()),
            Call::Store(address, width, value) => Command::Store(at(address), width.bytes(), value),
            Call::Truncate(file, bytes) => {
                let file = self.files.descriptor(file, false) as u64;
                call(libc::SYS_ftruncate, [file, bytes, 0])
            }
            Call::Read(transfer) => self.transfer(libc::SYS_pread64, transfer),
            Call::Write(transfer, _) => self.transfer(libc::SYS_pwrite64, transfer),
            Call::Dump(it) => Command::Dump(at(it.start), it.bytes / crate::address::PAGE),
            Call::Fork(_) | Call::Exit | Call::Replace | Call::Regions(_) | Call::Scarce(_) => {
                return None;
            }
        })
    }

    fn map(&self, map: &Map) -> Command {
        let at = |address| self.places.resolve(self.process, address);
        let (address, manner) = match map.at {
            Where::Fixed(address) => (at(address), libc::MAP_FIXED),
            Where::FixedNoReplace(address) => (at(address), libc::MAP_FIXED_NOREPLACE),
            Where::Hint(address, _) => (at(address), 0),
            Where::Anywhere(_) => (0, 0),
        };
        let sharing = if map.shared {
            libc::MAP_SHARED
        } else {
            libc::MAP_PRIVATE
        };
        let (file, offset, anonymous) = match map.backing {
            Backing::Anonymous => (-1, 0, libc::MAP_ANONYMOUS),
            Backing::File {
                file,
                offset,
                read_only,
            } => (self.files.descriptor(file, read_only), offset, 0),
        };
        let flags = (manner | sharing | anonymous) as u64 | bits(map.flags, map_bit);
        let file = i64::from(file).cast_unsigned();
        let arguments = [address, map.bytes, prot(map.prot), flags, file, offset];
        Command::Call(libc::SYS_mmap, arguments)
    }

    fn remap(&self, remap: &Remap) -> Command {
        let at = |address| self.places.resolve(self.process, address);
        let fixed = remap.fixed.map_or(0, |_| libc::MREMAP_FIXED as u64);
        let flags = bits(remap.flags, remap_bit) | fixed;
        let target = remap.fixed.map_or(0, at);
        let (old, bytes) = (at(remap.old.start), remap.old.bytes);
        let arguments = [old, bytes, remap.bytes, flags, target, 0];
        Command::Call(libc::SYS_mremap, arguments)
    }

    fn transfer(&self, number: i64, transfer: Transfer) -> Command {
        let Transfer {
            file,
            offset,
            bytes,
        } = transfer;
        let file = self.files.descriptor(file, false) as u64;
        Command::Call(number, [file, self.buffer(), bytes, offset, 0, 0])
    }

    fn buffer(&self) -> u64 {
        self.slot.buffer() as u64
    }
}

/// A call on a range, with a third argument.
fn on(number: i64, (start, bytes): (u64, u64), third: u64) -> Command {
    call(number, [start, bytes, third])
}

fn call(number: i64, [a, b, c]: [u64; 3]) -> Command {
    Command::Call(number, [a, b, c, 0, 0, 0])
}

fn bits<F: Flag>(flags: Flags<F>, bit: impl Fn(F) -> i32) -> u64 {
    flags.iter().fold(0, |bits, flag| bits | bit(flag) as u64)
}

fn prot(prot: Prot) -> u64 {
    let bit = |on, bit: i32| if on { bit as u64 } else { 0 };
    bit(prot.read, libc::PROT_READ)
        | bit(prot.write, libc::PROT_WRITE)
        | bit(prot.execute, libc::PROT_EXEC)
}

fn map_bit(flag: MapFlag) -> i32 {
    match flag {
        MapFlag::Populate => libc::MAP_POPULATE,
        MapFlag::NoReserve => libc::MAP_NORESERVE,
        MapFlag::GrowsDown => libc::MAP_GROWSDOWN,
        MapFlag::Locked => libc::MAP_LOCKED,
    }
}

fn remap_bit(flag: RemapFlag) -> i32 {
    match flag {
        RemapFlag::MayMove => libc::MREMAP_MAYMOVE,
        RemapFlag::DontUnmap => libc::MREMAP_DONTUNMAP,
    }
}

fn sync_bit(flag: SyncFlag) -> i32 {
    match flag {
        SyncFlag::Async => libc::MS_ASYNC,
        SyncFlag::Sync => libc::MS_SYNC,
        SyncFlag::Invalidate => libc::MS_INVALIDATE,
    }
}

fn lock_bit(flag: LockFlag) -> i32 {
    match flag {
        LockFlag::Current => libc::MCL_CURRENT,
        LockFlag::Future => libc::MCL_FUTURE,
        LockFlag::OnFault => libc::MCL_ONFAULT,
    }
}

fn value(advice: Advice) -> u64 {
    (match advice {
        Advice::Normal => libc::MADV_NORMAL,
        Advice::Random => libc::MADV_RANDOM,
        Advice::Sequential => libc::MADV_SEQUENTIAL,
        Advice::WillNeed => libc::MADV_WILLNEED,
        Advice::DontNeed => libc::MADV_DONTNEED,
        Advice::Free => libc::MADV_FREE,
        Advice::Remove => libc::MADV_REMOVE,
        Advice::DontFork => libc::MADV_DONTFORK,
        Advice::DoFork => libc::MADV_DOFORK,
        Advice::WipeOnFork => libc::MADV_WIPEONFORK,
        Advice::KeepOnFork => libc::MADV_KEEPONFORK,
        Advice::HugePage => libc::MADV_HUGEPAGE,
        Advice::NoHugePage => libc::MADV_NOHUGEPAGE,
        Advice::Cold => libc::MADV_COLD,
        Advice::PageOut => libc::MADV_PAGEOUT,
        Advice::PopulateRead => libc::MADV_POPULATE_READ,
        Advice::PopulateWrite => libc::MADV_POPULATE_WRITE,
    }) as u64
}
