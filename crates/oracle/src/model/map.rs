//! `mmap`.

use super::Model;
use super::answer::{Answer, fails, undefined};
use super::object::Object;
use super::page::{Attributes, Lock, Page};
use super::process::{LOWEST, Process, address, aligned, in_window, next, pages, place, whole};
use crate::address::{Address, Handle, Origin, PAGE, Range, USER_END};
use crate::outcome::Outcome;
use crate::step::{Advice, Backing, Map, MapFlag, ProcessId, Where};
use crate::system::Halfway;

/// Pages kept free below memory that grows down: `stack_guard_gap`.
pub const GUARD: u64 = 256;

/// A length that fits anywhere a system places mappings, and into its memory.
pub const FITS: u64 = 1 << 24;

/// The maximum length of a file.
pub(super) const LONGEST: u64 = i64::MAX as u64;

impl Model {
    pub(super) fn map(&mut self, id: ProcessId, map: &Map) -> Answer {
        let halfway = self.halfway;
        let process = self.process(id);
        process.may_map(map)?;
        let target = process.target(map);
        let refused = process.refused(map);
        if target.is_err() && refused.is_err() && halfway != Some(Halfway::Kept) {
            return undefined("which of two errors comes first");
        }
        let start = target?;
        refused?;
        let bytes = whole(map.bytes);
        let object = self.object(&map.backing, map.shared, bytes);
        let mapping = next(&mut self.serial);
        let process = self.process(id);
        let attributes = process.attributes(map, object);
        let offset = match map.backing {
            Backing::File { offset, .. } => offset / PAGE,
            Backing::Anonymous => 0,
        };
        process.remove(pages(start, bytes));
        for (index, number) in pages(start, bytes).enumerate() {
            let offset = object.map_or(0, |_| offset + index as u64);
            let page = Page::new(mapping, attributes, offset);
            process.pages.insert(number, page);
        }
        if map.flags.has(MapFlag::Populate) || attributes.lock != Lock::No {
            self.try_to_populate(id, pages(start, bytes));
        }
        Ok(placed(start, map.at))
    }

    /// The object that a mapping shows, unless it is private anonymous memory.
    fn object(&mut self, backing: &Backing, shared: bool, bytes: u64) -> Option<usize> {
        match *backing {
            Backing::File { file, .. } => Some(usize::from(file)),
            Backing::Anonymous if shared => {
                self.objects.push(Object::of_pages(bytes / PAGE));
                Some(self.objects.len() - 1)
            }
            Backing::Anonymous => None,
        }
    }
}

impl Process {
    /// Fails for errors in the request that do not depend on other mappings, and if its place is
    /// undefined.
    fn may_map(&self, map: &Map) -> Answer<()> {
        if let Where::Fixed(at) | Where::FixedNoReplace(at) | Where::Hint(at, _) = map.at {
            self.may_place(at, map.bytes)?;
        }
        if let Where::Hint(_, handle) | Where::Anywhere(handle) = map.at {
            self.is_new(handle)?;
        }
        let offset = match map.backing {
            Backing::File { offset, .. } => offset,
            Backing::Anonymous => 0,
        };
        if !aligned(offset) || map.bytes == 0 {
            return fails(libc::EINVAL);
        }
        let bytes = whole(map.bytes);
        if bytes == 0 || bytes > USER_END {
            return fails(libc::ENOMEM);
        }
        Ok(())
    }

    /// Fails if a mapping at a chosen address is undefined, as it is next to the heap.
    pub(super) fn may_place(&self, at: Address, bytes: u64) -> Answer<()> {
        if at.place == Origin::Heap {
            return undefined("mappings stay out of the heap");
        }
        if address(at) < LOWEST {
            return undefined("whether the lowest addresses may be mapped");
        }
        let start = at;
        self.start(Range { start, bytes }).map(|_| ())
    }

    /// Fails if the handle is used.
    pub(super) fn is_new(&self, handle: Handle) -> Answer<()> {
        let of = |handle| address(handle_start(handle)) / PAGE;
        if self.is_free(of(handle)..of(handle) + (1 << 16)) {
            Ok(())
        } else {
            undefined("the handle's name is taken")
        }
    }

    /// Where the mapping goes.
    fn target(&self, map: &Map) -> Answer<u64> {
        let bytes = whole(map.bytes);
        match map.at {
            Where::Fixed(at) | Where::FixedNoReplace(at) => {
                let start = address(at);
                if start > u64::MAX - PAGE + 1 {
                    return undefined("an address that Linux takes for an error number");
                }
                if start > USER_END - bytes {
                    return fails(libc::ENOMEM);
                }
                if !aligned(start) {
                    return fails(libc::EINVAL);
                }
                let replaces = matches!(map.at, Where::Fixed(_));
                if replaces || self.is_free(pages(start, bytes)) {
                    Ok(start)
                } else {
                    fails(libc::EEXIST)
                }
            }
            Where::Hint(at, handle) => {
                let hint = address(at) & !(PAGE - 1);
                if at.place == Origin::Window && self.welcomes(hint, bytes) {
                    Ok(hint)
                } else {
                    elsewhere(bytes, handle)
                }
            }
            Where::Anywhere(handle) => elsewhere(bytes, handle),
        }
    }

    /// Returns true if a hint can be followed: there is room, including the gap below memory that
    /// grows down.
    fn welcomes(&self, start: u64, bytes: u64) -> bool {
        let wanted = pages(start, bytes);
        let after = self.pages.range(wanted.end..).next();
        let crowded = after.is_some_and(|(&number, page)| {
            page.attributes.grows_down && number - wanted.end < GUARD
        });
        self.is_free(wanted) && !crowded
    }

    /// Fails if the rights and flags exclude the mapping.
    fn refused(&self, map: &Map) -> Answer<()> {
        let grows = map.flags.has(MapFlag::GrowsDown);
        if let Backing::File { offset, .. } = map.backing
            && (offset.checked_add(whole(map.bytes))).is_none_or(|end| end > LONGEST)
        {
            return fails(libc::EOVERFLOW);
        }
        if let Backing::File { read_only, .. } = map.backing
            && read_only
            && map.shared
            && map.prot.write
        {
            return fails(libc::EACCES);
        }
        if grows && (map.shared || map.backing != Backing::Anonymous) {
            fails(libc::EINVAL)
        } else {
            Ok(())
        }
    }

    fn attributes(&self, map: &Map, object: Option<usize>) -> Attributes {
        let read_only = matches!(
            map.backing,
            Backing::File {
                read_only: true,
                ..
            }
        );
        let locked = map.flags.has(MapFlag::Locked);
        Attributes {
            prot: map.prot,
            shared: map.shared,
            object,
            may_write: !(map.shared && read_only),
            lock: match self.future {
                Lock::No if locked => Lock::Yes,
                future => future,
            },
            grows_down: map.flags.has(MapFlag::GrowsDown),
            no_reserve: map.flags.has(MapFlag::NoReserve),
            dont_fork: false,
            wipe_on_fork: false,
            size: Advice::Normal,
            order: Advice::Normal,
        }
    }
}

/// Where the model places mappings without a given address.
fn elsewhere(bytes: u64, handle: Handle) -> Answer<u64> {
    if bytes <= FITS {
        Ok(address(handle_start(handle)))
    } else {
        undefined("whether so much fits anywhere")
    }
}

/// The first address that a handle names.
pub fn handle_start(handle: Handle) -> Address {
    Address {
        place: Origin::Handle(handle),
        offset: 0,
    }
}

/// The outcome that reports a mapping's place.
fn placed(start: u64, at: Where) -> Outcome {
    match at {
        Where::Hint(..) | Where::Anywhere(_) if !in_window(start) => Outcome::Somewhere,
        _ => Outcome::At(place(start)),
    }
}
