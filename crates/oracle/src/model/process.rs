//! A process of the model: a map from page to contents and rights.

use super::answer::{Stop, undefined};
use super::page::{Lock, Page};
use crate::address::{Address, HEAP_PAGES, Origin, PAGE, Range, USER_END, WINDOW, WINDOW_PAGES};
use std::collections::BTreeMap;
use std::ops;

/// The address of heaps in the model.
pub const HEAP: u64 = 1 << 32;
/// Where the model places mappings without a given address; handles are far apart.
const HANDLES: u64 = 1 << 46;
const HANDLE_SHIFT: u32 = 28;
/// Longer lengths are absurd: no mapping is this long.
const ABSURD: u64 = 1 << 47;
/// No process has memory below this address: it is undefined if it may have any (Linux's
/// `mmap_min_addr`).
pub const LOWEST: u64 = 1 << 16;

/// A process.
#[derive(Clone, PartialEq)]
pub struct Process {
    /// Mapped pages by number.
    pub pages: BTreeMap<u64, Page>,
    /// The heap's length in bytes.
    pub heap_end: u64,
    /// How future mappings are locked.
    pub future: Lock,
}

impl Process {
    /// A process without memory.
    pub fn new() -> Self {
        Process {
            pages: BTreeMap::new(),
            heap_end: 0,
            future: Lock::No,
        }
    }

    /// The start of a range whose use is defined: it stays within its place, or is so absurd that
    /// every system refuses it.
    pub fn start(&self, range: Range) -> Result<u64, Stop> {
        let Range { start, bytes } = range;
        let inside = |end: u64| {
            let within = start.offset.checked_add(bytes).is_some_and(|it| it <= end);
            within || (start.offset <= end && bytes >= ABSURD)
        };
        let nowhere = start.offset >= USER_END || inside(LOWEST);
        // Systems place the heap differently, so a length that makes the sum wrap at only some of
        // the places has different errors.
        let wraps_somewhere = (LOWEST..USER_END).contains(&bytes.wrapping_neg());
        let defined = match start.place {
            Origin::Window => inside(WINDOW_PAGES * PAGE),
            Origin::Heap => inside(HEAP_PAGES * PAGE) && !wraps_somewhere,
            Origin::Absolute => nowhere,
            Origin::Handle(_) => return self.handled(range),
        };
        if defined {
            Ok(address(start))
        } else {
            undefined("it leaves its place")
        }
    }

    /// The start of a handle's range. All of the range must be mapped: in place of an unmapped part
    /// the system may have placed something else.
    fn handled(&self, range: Range) -> Result<u64, Stop> {
        let Range { start, bytes } = range;
        let end = start.offset.saturating_add(bytes);
        let from = address(start);
        let pages = from / PAGE..(from + bytes.clamp(1, 1 << HANDLE_SHIFT)).div_ceil(PAGE);
        let mapped = pages.into_iter().all(|page| self.pages.contains_key(&page));
        if end < 1 << HANDLE_SHIFT && mapped {
            Ok(from)
        } else {
            undefined("the handle has no mapping")
        }
    }

    /// A single address, if its content is defined.
    pub fn at(&self, address: Address) -> Result<u64, Stop> {
        self.start(Range {
            start: address,
            bytes: 1,
        })
    }

    pub fn remove(&mut self, pages: ops::Range<u64>) {
        self.pages.retain(|page, _| !pages.contains(page));
    }

    /// Renames the part of `mapping` in `pages`, beyond a hole, towards which the mapping is about
    /// to grow: they may or may not become one again.
    pub fn rename(&mut self, pages: ops::Range<u64>, mapping: u64, serial: &mut u64) {
        let name = next(serial);
        let left = self.pages.range_mut(pages).map(|(_, page)| page);
        left.filter(|page| page.mapping == mapping)
            .for_each(|page| page.mapping = name);
    }

    /// The mapped pages among `pages`, which may be very many, and true if there are holes.
    pub fn mapped(&self, pages: ops::Range<u64>) -> (Vec<u64>, bool) {
        let count = pages.end - pages.start;
        let mapped: Vec<_> = self.pages.range(pages).map(|(&page, _)| page).collect();
        let holes = (mapped.len() as u64) < count;
        (mapped, holes)
    }

    /// Returns true if nothing is mapped in `pages`.
    pub fn is_free(&self, pages: ops::Range<u64>) -> bool {
        self.pages.range(pages).next().is_none()
    }
}

/// A new mapping number.
pub fn next(serial: &mut u64) -> u64 {
    *serial += 1;
    *serial
}

/// The model's address for `address`.
pub fn address(address: Address) -> u64 {
    let base = match address.place {
        Origin::Window => WINDOW,
        Origin::Heap => HEAP,
        Origin::Handle(handle) => HANDLES + (u64::from(handle) << HANDLE_SHIFT),
        Origin::Absolute => 0,
    };
    base.wrapping_add(address.offset)
}

/// The place of one of the model's addresses.
pub fn place(address: u64) -> Address {
    let (place, base) = match address {
        HEAP..WINDOW => (Origin::Heap, HEAP),
        WINDOW..HANDLES => (Origin::Window, WINDOW),
        HANDLES..USER_END => {
            let handle = (address - HANDLES) >> HANDLE_SHIFT;
            let base = HANDLES + (handle << HANDLE_SHIFT);
            (Origin::Handle(handle as u16), base)
        }
        _ => (Origin::Absolute, 0),
    };
    Address {
        place,
        offset: address - base,
    }
}

/// Returns true if an address lies in the window.
pub fn in_window(address: u64) -> bool {
    (WINDOW..WINDOW + WINDOW_PAGES * PAGE).contains(&address)
}

/// `bytes` rounded up to whole pages as the kernel does: absurd lengths become 0.
pub fn whole(bytes: u64) -> u64 {
    bytes.wrapping_add(PAGE - 1) & !(PAGE - 1)
}

/// Returns true if an address is the first of a page.
pub fn aligned(address: u64) -> bool {
    address.is_multiple_of(PAGE)
}

/// The pages of `bytes` bytes from `start`, as far as the address space reaches.
pub fn pages(start: u64, bytes: u64) -> ops::Range<u64> {
    let end = (u128::from(start) + u128::from(bytes)).div_ceil(u128::from(PAGE));
    start / PAGE..end.min(u128::from(u64::MAX / PAGE + 1)) as u64
}
