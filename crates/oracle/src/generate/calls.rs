//! Chooses a call and its arguments.

use super::Generator;
use crate::address::{Address, HEAP_PAGES, Origin, PAGE, Range, WINDOW_PAGES};
use crate::flags::Flags;
use crate::model::Known;
use crate::step::{
    Advice, Backing, Call, FILES, LockFlag, Map, MapFlag, ProcessId, Remap, RemapFlag, Step,
    SyncFlag, TRANSFER, Transfer, Where, Width,
};

/// The usual size of files, in pages.
pub const FILE_PAGES: u64 = 12;

/// The subject of a step.
#[derive(Clone, Copy)]
enum Kind {
    Map,
    Unmap,
    Protect,
    Remap,
    Advise,
    Sync,
    Lock,
    LockOnFault,
    Unlock,
    LockAll,
    UnlockAll,
    InCore,
    Break,
    Fork,
    Exit,
    Replace,
    Load,
    Store,
    Truncate,
    Read,
    Write,
    Regions,
    Dump,
}

/// The relative frequency of each kind.
const WEIGHTS: [(u64, Kind); 23] = [
    (150, Kind::Map),
    (50, Kind::Unmap),
    (80, Kind::Protect),
    (80, Kind::Remap),
    (120, Kind::Advise),
    (20, Kind::Sync),
    (25, Kind::Lock),
    (10, Kind::LockOnFault),
    (25, Kind::Unlock),
    (3, Kind::LockAll),
    (6, Kind::UnlockAll),
    (30, Kind::InCore),
    (20, Kind::Break),
    (35, Kind::Fork),
    (20, Kind::Exit),
    (3, Kind::Replace),
    (120, Kind::Load),
    (170, Kind::Store),
    (30, Kind::Truncate),
    (15, Kind::Read),
    (40, Kind::Write),
    (15, Kind::Regions),
    (25, Kind::Dump),
];

/// The number of calls in a hundred that have each flag.
const SYNC_FLAGS: [(u64, SyncFlag); 3] = [
    (30, SyncFlag::Async),
    (50, SyncFlag::Sync),
    (40, SyncFlag::Invalidate),
];
const LOCK_FLAGS: [(u64, LockFlag); 3] = [
    (50, LockFlag::Current),
    (50, LockFlag::Future),
    (40, LockFlag::OnFault),
];

impl Generator<'_> {
    /// A call that `process` might make.
    pub(super) fn call(&mut self, known: &Known, process: ProcessId) -> Call {
        let kind = if self.has_little(known, process) && self.chance(50) {
            Kind::Map
        } else {
            self.weighted(&WEIGHTS)
        };
        match kind {
            Kind::Map => Call::Map(self.map(known, process)),
            Kind::Unmap => Call::Unmap(self.range(known, process)),
            Kind::Protect => {
                let prot = self.prot();
                Call::Protect(self.range(known, process), prot)
            }
            Kind::Remap => Call::Remap(self.remap(known, process)),
            Kind::Advise => {
                let advice = self.advice();
                Call::Advise(self.range(known, process), advice)
            }
            Kind::Sync => {
                let flags = self.flags(&SYNC_FLAGS);
                Call::Sync(self.range(known, process), flags)
            }
            Kind::Lock => Call::Lock(self.range(known, process)),
            Kind::LockOnFault => Call::LockOnFault(self.range(known, process)),
            Kind::Unlock => Call::Unlock(self.range(known, process)),
            Kind::LockAll => Call::LockAll(self.flags(&LOCK_FLAGS)),
            Kind::UnlockAll => Call::UnlockAll,
            Kind::InCore => Call::InCore(self.range(known, process)),
            Kind::Break => Call::Break(self.length(HEAP_PAGES / 4)),
            Kind::Fork => {
                if self.chance(40) {
                    self.withhold(known, process);
                }
                Call::Fork(self.free_process(known))
            }
            Kind::Exit => Call::Exit,
            Kind::Replace => Call::Replace,
            Kind::Load => {
                let width = self.width();
                Call::Load(self.access(known, process, width.bytes()), width)
            }
            Kind::Store => self.store(known, process),
            Kind::Truncate => {
                let file = self.file();
                Call::Truncate(file, self.length(FILE_PAGES))
            }
            Kind::Read => Call::Read(self.transfer()),
            Kind::Write => self.write(),
            Kind::Regions => Call::Regions(self.whole_range(known, process, |_| true)),
            Kind::Dump => {
                let range = self.whole_range(known, process, |_| true);
                let bytes = range.bytes.min(8 * PAGE);
                Call::Dump(Range { bytes, ..range })
            }
        }
    }

    fn advice(&mut self) -> Advice {
        let advice = Advice::ALL.map(|(advice, _)| (weight(advice), advice));
        self.weighted(&advice)
    }

    fn store(&mut self, known: &Known, process: ProcessId) -> Call {
        let width = self.width();
        self.value += 1;
        let address = self.access(known, process, width.bytes());
        Call::Store(address, width, self.value)
    }

    fn map(&mut self, known: &Known, process: ProcessId) -> Map {
        if self.chance(6) {
            return self.stack();
        }
        let in_window = |place| place == Origin::Window;
        let range = if self.chance(85) {
            self.whole_range(known, process, in_window)
        } else {
            self.range(known, process)
        };
        self.handle += 1;
        let handle = self.handle;
        let somewhere = if self.chance(40) {
            self.just_below(&range, range.bytes)
        } else {
            self.anywhere().start
        };
        let at = self.weighted(&[
            (50, Where::Fixed(range.start)),
            (10, Where::FixedNoReplace(range.start)),
            (4, Where::Hint(range.start, handle)),
            (10, Where::Hint(somewhere, handle)),
            (26, Where::Anywhere(handle)),
        ]);
        Map {
            at,
            bytes: range.bytes,
            prot: self.prot(),
            shared: self.chance(35),
            backing: self.backing(),
            flags: self.flags(&[
                (12, MapFlag::Populate),
                (5, MapFlag::NoReserve),
                (8, MapFlag::GrowsDown),
                (4, MapFlag::Locked),
            ]),
        }
    }

    /// Adds steps after which a child does not inherit everything of its parent.
    fn withhold(&mut self, known: &Known, process: ProcessId) {
        let start = self.whole_range(known, process, |_| true).start;
        self.value += 1;
        let call = Call::Store(start, Width::Word, self.value);
        self.take(Step { process, call });
        let advice = if self.chance(70) {
            Advice::WipeOnFork
        } else {
            Advice::DontFork
        };
        let call = Call::Advise(Range::pages(start, 1), advice);
        self.take(Step { process, call });
    }

    /// Memory that grows down, with some room below.
    fn stack(&mut self) -> Map {
        let page = self.hot();
        let pages = (1 + self.below(4)).min(WINDOW_PAGES - page);
        let flags = Flags::NONE.with(MapFlag::GrowsDown);
        Map {
            at: Where::Fixed(Address::window(page)),
            bytes: pages * PAGE,
            prot: self.prot(),
            shared: false,
            backing: Backing::Anonymous,
            flags: if self.chance(10) {
                flags.with(MapFlag::Locked)
            } else {
                flags
            },
        }
    }

    fn backing(&mut self) -> Backing {
        if self.chance(55) {
            return Backing::Anonymous;
        }
        let offset = match self.below(50) {
            0 => self.below(3 * PAGE),
            1 => self.absurd_length(),
            2..40 => self.below(4) * PAGE,
            _ => self.below(FILE_PAGES) * PAGE,
        };
        Backing::File {
            file: self.file(),
            offset,
            read_only: self.chance(10),
        }
    }

    fn remap(&mut self, known: &Known, process: ProcessId) -> Remap {
        if self.chance(25) {
            return self.remap_several(known, process);
        }
        let mut old = if self.chance(90) {
            self.whole_range(known, process, |place| place != Origin::Heap)
        } else {
            self.range(known, process)
        };
        let bytes = match self.below(100) {
            0..40 => old.bytes,
            40..70 => old.bytes.saturating_add(self.pages() * PAGE),
            70..90 => old.bytes.saturating_sub(self.pages() * PAGE).max(PAGE),
            90..97 => self.pages() * PAGE,
            _ => self.absurd_length(),
        };
        if self.chance(8) {
            old.bytes = 0;
        }
        let fixed = if self.chance(45) {
            Some(self.range(known, process).start)
        } else {
            None
        };
        self.handle += 1;
        Remap {
            old,
            bytes,
            fixed,
            handle: fixed.is_none().then_some(self.handle),
            flags: self.flags(&[(80, RemapFlag::MayMove), (15, RemapFlag::DontUnmap)]),
        }
    }

    /// An `mremap` to a given place that may span gaps and several mappings.
    fn remap_several(&mut self, known: &Known, process: ProcessId) -> Remap {
        let first = self.whole_range(known, process, |place| place == Origin::Window);
        let page = first.start.offset / PAGE;
        let pages = first.bytes / PAGE + 1 + self.below(16);
        let pages = pages.min(WINDOW_PAGES.saturating_sub(page)).max(1);
        let bytes = if self.chance(70) {
            pages * PAGE
        } else {
            (1 + self.below(pages)) * PAGE
        };
        Remap {
            old: Range::pages(first.start, pages),
            bytes,
            fixed: Some(self.anywhere().start),
            handle: None,
            flags: self.flags(&[(97, RemapFlag::MayMove), (20, RemapFlag::DontUnmap)]),
        }
    }

    pub(super) fn write(&mut self) -> Call {
        self.value += 1;
        Call::Write(self.transfer(), self.value as u8)
    }

    fn transfer(&mut self) -> Transfer {
        let bytes = if self.chance(50) {
            self.below(9)
        } else {
            self.below(TRANSFER)
        };
        let near = if self.chance(50) {
            self.below(FILE_PAGES) * PAGE
        } else {
            self.length(FILE_PAGES)
        };
        Transfer {
            file: self.file(),
            offset: near,
            bytes,
        }
    }

    /// A length of that many pages, mostly exact.
    fn length(&mut self, pages: u64) -> u64 {
        let whole = self.below(pages + 1) * PAGE;
        if self.chance(70) {
            whole
        } else {
            whole + self.below(PAGE)
        }
    }

    /// A file, mostly the first, so that operations affect the same one.
    fn file(&mut self) -> u8 {
        let file = self.below(u64::from(FILES) * 2);
        if file < u64::from(FILES) {
            file as u8
        } else {
            0
        }
    }

    fn width(&mut self) -> Width {
        if self.chance(50) {
            Width::Byte
        } else {
            Width::Word
        }
    }
}

/// The weight of advice. Advice that changes contents is the most frequent.
fn weight(advice: Advice) -> u64 {
    match advice {
        Advice::DontNeed => 8,
        Advice::WipeOnFork => 6,
        Advice::Free | Advice::Remove | Advice::DontFork => 4,
        Advice::PopulateRead | Advice::PopulateWrite => 3,
        Advice::Normal | Advice::Random | Advice::Sequential | Advice::WillNeed => 1,
        _ => 2,
    }
}
