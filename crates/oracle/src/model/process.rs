//! A process of the model: a map from page to contents and rights.

use super::answer::{Stop, undefined};
use super::page::{Lock, Page};
use crate::address::{Address, HEAP_PAGES, PAGE, Place, Range, USER_END, WINDOW, WINDOW_PAGES};
use std::collections::BTreeMap;
use std::ops;

/// Where the model has its heaps.
pub const HEAP: u64 = 1 << 32;
/// Where the model puts what the system places; each handle far from the next.
const HANDLES: u64 = 1 << 46;
const HANDLE_SHIFT: u32 = 28;
/// Lengths from here on are absurd: no mapping is so long.
const ABSURD: u64 = 1 << 47;

/// A process.
#[derive(Clone, PartialEq)]
pub struct Process {
    /// What is mapped, by page number.
    pub pages: BTreeMap<u64, Page>,
    /// The heap's end, in bytes from its start.
    pub heap_end: u64,
    /// How mappings to come are locked.
    pub future: Lock,
}

impl Process {
    /// One that has nothing.
    pub fn new() -> Self {
        Process {
            pages: BTreeMap::new(),
            heap_end: 0,
            future: Lock::No,
        }
    }

    /// Where a range begins, if what becomes of it is defined: it stays within its place, or
    /// is so absurd that every system refuses it.
    pub fn start(&self, range: Range) -> Result<u64, Stop> {
        let Range { start, bytes } = range;
        let inside = |end: u64| {
            let within = start.offset.checked_add(bytes).is_some_and(|it| it <= end);
            within || (start.offset <= end && bytes >= ABSURD)
        };
        let defined = match start.place {
            Place::Window => inside(WINDOW_PAGES * PAGE),
            Place::Heap => inside(HEAP_PAGES * PAGE),
            Place::Absolute => start.offset >= USER_END,
            Place::Handle(_) => return self.handled(range),
        };
        match defined {
            true => Ok(address(start)),
            false => undefined("it leaves its place"),
        }
    }

    /// Where a range of a handle begins: all of it is mapped. What is not may be anything by
    /// now, since the system may have placed something else there.
    fn handled(&self, range: Range) -> Result<u64, Stop> {
        let Range { start, bytes } = range;
        let end = start.offset.saturating_add(bytes);
        let from = address(start);
        let pages = from / PAGE..(from + bytes.clamp(1, 1 << HANDLE_SHIFT)).div_ceil(PAGE);
        let mapped = pages.into_iter().all(|page| self.pages.contains_key(&page));
        match end < 1 << HANDLE_SHIFT && mapped {
            true => Ok(from),
            false => undefined("the handle's mapping is not there"),
        }
    }

    /// Where one address is, if what is there is defined.
    pub fn at(&self, address: Address) -> Result<u64, Stop> {
        self.start(Range {
            start: address,
            bytes: 1,
        })
    }

    /// Takes `pages` away.
    pub fn remove(&mut self, pages: ops::Range<u64>) {
        self.pages.retain(|page, _| !pages.contains(page));
    }

    /// Mapping `mapping` is about to grow towards what is left of it in `pages` behind a hole:
    /// whether they become one again is not sure.
    pub fn rename(&mut self, pages: ops::Range<u64>, mapping: u64, serial: &mut u64) {
        let name = next(serial);
        let left = self.pages.range_mut(pages).map(|(_, page)| page);
        left.filter(|page| page.mapping == mapping)
            .for_each(|page| page.mapping = name);
    }

    /// Whether nothing is mapped in `pages`.
    pub fn is_free(&self, pages: ops::Range<u64>) -> bool {
        self.pages.range(pages).next().is_none()
    }
}

/// The next number of a mapping.
pub fn next(serial: &mut u64) -> u64 {
    *serial += 1;
    *serial
}

/// Where the model has this.
pub fn address(address: Address) -> u64 {
    let base = match address.place {
        Place::Window => WINDOW,
        Place::Heap => HEAP,
        Place::Handle(handle) => HANDLES + (u64::from(handle) << HANDLE_SHIFT),
        Place::Absolute => 0,
    };
    base.wrapping_add(address.offset)
}

/// The place of an address of the model's.
pub fn place(address: u64) -> Address {
    let (place, base) = match address {
        HEAP..WINDOW => (Place::Heap, HEAP),
        WINDOW..HANDLES => (Place::Window, WINDOW),
        HANDLES..USER_END => {
            let handle = (address - HANDLES) >> HANDLE_SHIFT;
            let base = HANDLES + (handle << HANDLE_SHIFT);
            (Place::Handle(handle as u16), base)
        }
        _ => (Place::Absolute, 0),
    };
    Address {
        place,
        offset: address - base,
    }
}

/// The window's place in the model.
pub fn in_window(address: u64) -> bool {
    (WINDOW..WINDOW + WINDOW_PAGES * PAGE).contains(&address)
}

/// `bytes` in whole pages, as the kernel rounds: absurd lengths become 0.
pub fn whole(bytes: u64) -> u64 {
    bytes.wrapping_add(PAGE - 1) & !(PAGE - 1)
}

/// Whether an address is a page's first.
pub fn aligned(address: u64) -> bool {
    address.is_multiple_of(PAGE)
}

/// The pages of so many bytes; the end does not wrap around.
pub fn pages(start: u64, bytes: u64) -> ops::Range<u64> {
    start / PAGE..(start + bytes).div_ceil(PAGE)
}
