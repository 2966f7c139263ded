//! `mremap`.

use super::answer::{Answer, fails, undefined};
use super::map::{FITS, handle_start};
use super::page::{Lock, Page};
use super::process::{Process, address, aligned, in_window, next, pages, place, whole};
use super::{Model, alive};
use crate::address::{Address, Origin, PAGE, Range, USER_END};
use crate::outcome::Outcome;
use crate::step::{ProcessId, Remap, RemapFlag};
use std::collections::BTreeMap;
use std::ops;

/// The answer to the question if a range belongs to one mapping.
#[derive(PartialEq)]
enum Unity {
    One,
    Several,
    /// Depends on which mappings the system merges.
    Unclear,
}

/// A request with its lengths in whole pages.
struct Request {
    start: u64,
    old: u64,
    new: u64,
    fixed: Option<u64>,
    may_move: bool,
    dont_unmap: bool,
}

impl Request {
    fn source(&self) -> ops::Range<u64> {
        let end = self.start.saturating_add(self.old);
        self.start / PAGE..end.div_ceil(PAGE)
    }

    /// Returns true if the request asks for another place.
    fn implies_move(&self) -> bool {
        self.fixed.is_some() || self.dont_unmap
    }

    /// Returns true if the request moves a range of unchanged length to a given place: only then
    /// may the range consist of several mappings.
    fn only_moves(&self) -> bool {
        self.fixed.is_some() && self.old == self.new
    }
}

impl Model {
    pub(super) fn remap(&mut self, id: ProcessId, remap: &Remap) -> Answer {
        let request = self.process(id).request(remap)?;
        let Request {
            start, old, new, ..
        } = request;
        if !request.implies_move() && new <= old {
            // Only the part that is cut off matters, whatever it is.
            self.process(id).remove(pages(start + new, old - new));
            return Ok(Outcome::At(place(start)));
        }
        if !request.implies_move() && self.process(id).can_grow(&request)? {
            self.grow(id, &request);
            return Ok(Outcome::At(place(start)));
        }
        if !request.may_move {
            return fails(libc::ENOMEM);
        }
        let target = match (request.fixed, remap.handle) {
            (Some(target), _) => target,
            (None, Some(_)) if new > FITS => {
                return undefined("whether so much fits anywhere");
            }
            (None, Some(handle)) => {
                self.process(id).is_new(handle)?;
                address(handle_start(handle))
            }
            (None, None) => return undefined("a mapping that moves needs a handle"),
        };
        self.transfer(id, &request, target);
        Ok(if in_window(target) || remap.fixed.is_some() {
            Outcome::At(place(target))
        } else {
            Outcome::Somewhere
        })
    }

    /// Appends pages to the mapping in place.
    fn grow(&mut self, id: ProcessId, request: &Request) {
        let serial = &mut self.serial;
        let process = alive(&mut self.processes, id);
        let added = request.source().end..pages(request.start, request.new).end;
        let last = process.pages[&(added.start - 1)].clone();
        process.rename(added.end..u64::MAX, last.mapping, serial);
        process.extend(added.clone(), &last, 1);
        self.populate_locked(id, last.attributes.lock, added);
    }

    /// Moves pages, shortened or extended, to `target`, in place of its mappings.
    fn transfer(&mut self, id: ProcessId, request: &Request, target: u64) {
        let added = next(&mut self.serial);
        let first = self.process(id).pages[&(request.start / PAGE)].clone();
        let goal = pages(target, request.new);
        let source = request.source();
        let mut moved = self.taken(id, request);
        if !request.only_moves() {
            self.process(id).remove(goal.clone());
        }
        let mut renamed = BTreeMap::new();
        for (number, page) in &mut moved {
            let serial = &mut self.serial;
            page.mapping = *renamed.entry(page.mapping).or_insert_with(|| next(serial));
            *number = *number - source.start + goal.start;
        }
        let kept = source.end.min(source.start + request.new / PAGE) - source.start;
        let rest = goal.start + kept..goal.end;
        let mapping = moved.first().map_or(added, |(_, page)| page.mapping);
        let first = Page { mapping, ..first };
        let process = self.process(id);
        process.pages.extend(moved);
        process.extend(rest.clone(), &first, kept);
        self.populate_locked(id, first.attributes.lock, rest);
    }

    /// Removes the pages that move and those that are cut off; or leaves empty pages there.
    fn taken(&mut self, id: ProcessId, request: &Request) -> Vec<(u64, Page)> {
        let source = request.source();
        let kept = source.clone().take((request.new / PAGE) as usize);
        let process = self.process(id);
        let taken = kept.filter_map(|number| Some((number, process.pages.get(&number)?.clone())));
        let taken: Vec<_> = taken.collect();
        if !request.dont_unmap {
            process.remove(source);
            return taken;
        }
        let mut renamed = BTreeMap::new();
        for (number, page) in &taken {
            let left = *renamed
                .entry(page.mapping)
                .or_insert_with(|| next(&mut self.serial));
            let page = self.page(id, *number);
            page.forget();
            page.mapping = left;
        }
        taken
    }

    fn populate_locked(&mut self, id: ProcessId, lock: Lock, pages: ops::Range<u64>) {
        if lock == Lock::Yes {
            self.try_to_populate(id, pages);
        }
    }
}

impl Process {
    /// The request, if it is valid.
    fn request(&self, remap: &Remap) -> Answer<Request> {
        let request = self.understood(remap)?;
        let Request {
            start, old, new, ..
        } = request;
        let Some(first) = self.pages.get(&(start / PAGE)) else {
            return fails(libc::EFAULT);
        };
        if old == 0 && !first.attributes.shared {
            return fails(libc::EINVAL);
        }
        if (new > old || request.implies_move()) && !request.only_moves() {
            let kept = request.source().take((new / PAGE) as usize);
            match self.unity(kept) {
                Unity::One => {}
                Unity::Several => return fails(libc::EFAULT),
                Unity::Unclear => return undefined("whether the range is one mapping"),
            }
        }
        let beyond = start.checked_add(old).is_none_or(|end| end > USER_END);
        if beyond && request.implies_move() {
            return undefined("moving the beginning of more than an address space holds");
        }
        if beyond {
            return fails(libc::EINVAL);
        }
        let mut left = self.pages.range(request.source());
        if request.dont_unmap && left.any(|(_, page)| page.is_locked()) {
            return undefined("which locks stay where moved pages were");
        }
        let onto = request.fixed.map(|target| pages(target, new));
        if onto.is_some_and(|target| target.contains(&(start / PAGE))) {
            return undefined("a second mapping in place of the first");
        }
        Ok(request)
    }

    /// Errors in the request that do not depend on mappings.
    fn understood(&self, remap: &Remap) -> Answer<Request> {
        if remap.old.start.place == Origin::Heap {
            return undefined("the heap is not moved");
        }
        let start = self.start(remap.old)?;
        if let Some(at) = remap.fixed {
            self.may_place(at, remap.bytes)?;
        }
        let request = Request {
            start,
            old: whole(remap.old.bytes),
            new: whole(remap.bytes),
            fixed: remap.fixed.map(address),
            may_move: remap.flags.has(RemapFlag::MayMove),
            dont_unmap: remap.flags.has(RemapFlag::DontUnmap),
        };
        let Request { old, new, .. } = request;
        if !aligned(start) || new == 0 || new > USER_END {
            return fails(libc::EINVAL);
        }
        if request.implies_move() {
            let target = request.fixed.unwrap_or(0);
            let resizes = request.dont_unmap && old != new;
            if target > USER_END - new || !aligned(target) || !request.may_move || resizes {
                return fails(libc::EINVAL);
            }
            let placed = |at: Address| matches!(at.place, Origin::Handle(_));
            if old >= 1 << 40 && remap.fixed.is_some_and(placed) {
                return undefined("whether it reaches a placed mapping");
            }
            // A length that wraps around overlaps nothing.
            if start.wrapping_add(old) > target && target + new > start {
                return fails(libc::EINVAL);
            }
        }
        if remap.old.bytes > 0 && old == 0 {
            return undefined("a length that wraps around");
        }
        Ok(request)
    }

    /// Returns true if there is room behind the mapping.
    fn can_grow(&self, request: &Request) -> Answer<bool> {
        if request.old == 0 {
            return Ok(false);
        }
        if let Origin::Handle(_) = place(request.start).place {
            return if request.may_move {
                Ok(false)
            } else {
                undefined("whether there is room behind a mapping that was placed")
            };
        }
        let old = Range::pages(place(request.start), 1);
        let whole = Range {
            bytes: request.new,
            ..old
        };
        self.start(whole)?;
        let added = request.source().end..pages(request.start, request.new).end;
        Ok(self.is_free(added))
    }

    /// Adds pages that continue the mapping of `page`, `from` pages further on.
    fn extend(&mut self, pages: ops::Range<u64>, page: &Page, from: u64) {
        for (index, number) in pages.enumerate() {
            let far = from + index as u64;
            let offset = page.attributes.object.map_or(0, |_| page.offset + far);
            let next = Page::new(page.mapping, page.attributes, offset);
            self.pages.insert(number, next);
        }
    }

    fn unity(&self, range: impl Iterator<Item = u64>) -> Unity {
        let mut unity = Unity::One;
        for number in range.skip(1) {
            let pair = (self.pages.get(&(number - 1)), self.pages.get(&number));
            let (Some(before), Some(page)) = pair else {
                return Unity::Several;
            };
            let goes_on = page.attributes.object.is_none() || page.offset == before.offset + 1;
            if page.attributes != before.attributes || !goes_on {
                return Unity::Several;
            }
            if page.mapping != before.mapping {
                unity = Unity::Unclear;
            }
        }
        unity
    }
}
