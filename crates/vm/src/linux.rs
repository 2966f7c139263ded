//! The arguments of Linux's calls on memory, checked as Linux does before it looks up a mapping.
//!
//! A kernel with Linux's calls turns a task's numbers into pages by these functions, named after
//! the calls, and then asks the [`Space`](crate::Space). `None` means that there are no pages: the
//! call has nothing to do, and succeeds. [`Error::errno`] gives the number that the task gets.

use crate::error::Error;
use crate::space::{At, HIGHEST, LOWEST, Move, whole_pages};
use machine::{PAGE_SIZE, VaRange};

/// The bytes, in whole pages, that `mmap` maps.
///
/// # Errors
/// [`Error::Invalid`] if there are none, [`Error::NoAddresses`] if they reach beyond [`HIGHEST`].
pub fn mmap(at: At, bytes: usize) -> Result<usize, Error> {
    if bytes == 0 {
        return Err(invalid("no bytes"));
    }
    let start = match at {
        At::Fixed(start) | At::Free(start) => start,
        At::Anywhere | At::Hint(_) => 0,
    };
    let whole = whole_pages(bytes).filter(|&whole| is_below_highest(start, whole));
    whole.ok_or(Error::NoAddresses { bytes })
}

/// The pages that `munmap` unmaps: none below [`LOWEST`], where nothing is mapped.
///
/// # Errors
/// [`Error::Invalid`] if `start` is unaligned, there are no bytes, or they reach beyond
/// [`HIGHEST`].
pub fn munmap(start: usize, bytes: usize) -> Result<Option<VaRange>, Error> {
    if bytes == 0 {
        return Err(invalid("no bytes"));
    }
    let beyond = invalid("addresses beyond the highest");
    let range = pages(start, bytes, beyond, beyond)?.map(|range| VaRange {
        start: range.start.max(LOWEST),
        ..range
    });
    Ok(range.filter(|range| range.start < range.end))
}

/// The pages that `mprotect` protects.
///
/// # Errors
/// [`Error::Invalid`] if `start` is unaligned, [`Error::NotMapped`] if a page cannot be mapped.
pub fn mprotect(start: usize, bytes: usize) -> Result<Option<VaRange>, Error> {
    mappable(start, bytes, not_mapped(start))
}

/// The pages that `madvise` is about.
///
/// # Errors
/// [`Error::Invalid`] if `start` is unaligned or `bytes` wraps around, [`Error::NotMapped`] if a
/// page cannot be mapped.
pub fn madvise(start: usize, bytes: usize) -> Result<Option<VaRange>, Error> {
    mappable(start, bytes, invalid("a length that wraps around"))
}

/// The pages that `msync` writes. A length that wraps around counts as no bytes.
///
/// # Errors
/// [`Error::Invalid`] if `start` is unaligned, [`Error::NotMapped`] if a page cannot be mapped.
pub fn msync(start: usize, bytes: usize) -> Result<Option<VaRange>, Error> {
    let bytes = whole_pages(bytes).unwrap_or(0);
    mappable(start, bytes, not_mapped(start))
}

/// The pages that `mincore` looks at. The address is checked even if there are none.
///
/// # Errors
/// [`Error::Invalid`] if `start` is unaligned, [`Error::NotMapped`] if a page cannot be mapped.
pub fn mincore(start: usize, bytes: usize) -> Result<Option<VaRange>, Error> {
    match mappable(start, bytes, not_mapped(start))? {
        None if start > HIGHEST => Err(not_mapped(start)),
        range => Ok(range),
    }
}

/// The pages that `mlock`, `mlock2` and `munlock` lock or unlock: those that the bytes touch. A
/// length that wraps around counts as no bytes.
///
/// # Errors
/// [`Error::Invalid`] if the end wraps around, [`Error::NotMapped`] if a page cannot be mapped.
pub fn mlock(start: usize, bytes: usize) -> Result<Option<VaRange>, Error> {
    let within = start % PAGE_SIZE;
    let bytes = whole_pages(bytes.wrapping_add(within)).unwrap_or(0);
    let wraps = invalid("a range that wraps around");
    mappable(start - within, bytes, wraps)
}

/// The pages that `mremap` moves or resizes, and their new length in whole pages.
///
/// An old length that wraps around gives a range to the end of all addresses, which no mapping
/// fills.
///
/// # Errors
/// [`Error::Invalid`] if the new length or the target cannot be, if the target overlaps the old
/// pages, or if pages are left behind and the lengths differ.
pub fn mremap(
    start: usize,
    old: usize,
    new: usize,
    place: Move,
) -> Result<(VaRange, usize), Error> {
    let (old, new) = (whole_pages(old), whole_pages(new).unwrap_or(0));
    let (target, has_target) = match place {
        Move::Never | Move::IfNeeded => (0, false),
        // Linux takes a target that is not given for 0, and checks it.
        Move::Leaving => (0, true),
        Move::To(target) | Move::LeavingTo(target) => (target, true),
    };
    // An old length that wraps around overlaps nothing.
    let old_end = start.wrapping_add(old.unwrap_or(0));
    if new == 0 || !is_below_highest(target, new) || !target.is_multiple_of(PAGE_SIZE) {
        return Err(invalid("no such new place"));
    }
    if has_target && old_end > target && target + new > start {
        return Err(invalid("the new place overlaps the old one"));
    }
    if place.leaves() && old != Some(new) {
        return Err(invalid("pages that are left behind keep their length"));
    }
    let end = old.and_then(|old| start.checked_add(old));
    let end = end.unwrap_or(usize::MAX);
    Ok((VaRange { start, end }, new))
}

const fn invalid(reason: &'static str) -> Error {
    Error::Invalid { reason }
}

const fn not_mapped(address: usize) -> Error {
    Error::NotMapped { address }
}

/// Returns true if `bytes` from `start` on end at [`HIGHEST`] at most.
fn is_below_highest(start: usize, bytes: usize) -> bool {
    start.checked_add(bytes).is_some_and(|end| end <= HIGHEST)
}

/// The pages of `bytes` from `start` on: the error `wraps` if there is no such range, and `beyond`
/// if it ends beyond [`HIGHEST`].
fn pages(
    start: usize,
    bytes: usize,
    wraps: Error,
    beyond: Error,
) -> Result<Option<VaRange>, Error> {
    if !start.is_multiple_of(PAGE_SIZE) {
        return Err(invalid("an address within a page"));
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

/// The pages of a call that fails where nothing can be mapped.
fn mappable(start: usize, bytes: usize, wraps: Error) -> Result<Option<VaRange>, Error> {
    match pages(start, bytes, wraps, not_mapped(start))? {
        Some(range) if range.start < LOWEST => Err(not_mapped(range.start)),
        range => Ok(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = PAGE_SIZE;
    /// Longer than any number of whole pages.
    const LONG: usize = usize::MAX;

    /// The errno, or none.
    fn errno<T>(answer: Result<T, Error>) -> i32 {
        answer.err().map_or(0, |error| error.errno())
    }

    #[test]
    fn calls_have_errors_of_their_own() {
        let of = |start, bytes| {
            [munmap, mprotect, madvise, msync, mincore, mlock]
                .map(|call: fn(_, _) -> _| errno(call(start, bytes)))
        };
        const INVAL: i32 = 22;
        const NOMEM: i32 = 12;
        assert_eq!(of(LOWEST, PAGE), [0; 6]);
        assert_eq!(of(LOWEST, 0), [INVAL, 0, 0, 0, 0, 0]);
        assert_eq!(of(LOWEST + 1, PAGE), [INVAL, INVAL, INVAL, INVAL, INVAL, 0]);
        assert_eq!(of(LOWEST, LONG), [INVAL, NOMEM, INVAL, 0, NOMEM, 0]);
        assert_eq!(
            of(HIGHEST, PAGE),
            [INVAL, NOMEM, NOMEM, NOMEM, NOMEM, NOMEM]
        );
        assert_eq!(of(0, PAGE), [0, NOMEM, NOMEM, NOMEM, NOMEM, NOMEM]);
        assert_eq!(of(HIGHEST + PAGE, 0), [INVAL, 0, 0, 0, NOMEM, 0]);
    }

    #[test]
    fn the_bytes_of_a_call_are_whole_pages() {
        let range = |start, end| Ok(Some(VaRange { start, end }));
        assert_eq!(munmap(0, LOWEST + 1), range(LOWEST, LOWEST + PAGE));
        assert_eq!(mlock(LOWEST + 1, PAGE), range(LOWEST, LOWEST + 2 * PAGE));
        assert_eq!(mmap(At::Anywhere, 1), Ok(PAGE));
        assert_eq!(errno(mmap(At::Fixed(HIGHEST), 1)), 12);
    }

    #[test]
    fn a_target_that_cannot_be_is_refused() {
        let at = 1 << 30;
        let moved = |old, new, place| mremap(at, old, new, place);
        let range = VaRange {
            start: at,
            end: at + 2 * PAGE,
        };
        let to = at + 2 * PAGE;
        assert_eq!(moved(PAGE + 1, 1, Move::To(to)), Ok((range, PAGE)));
        for (old, new, place) in [
            (PAGE, 0, Move::Never),
            (PAGE, LONG, Move::IfNeeded),
            (PAGE, PAGE, Move::To(to + 1)),
            (PAGE, PAGE, Move::To(HIGHEST)),
            (PAGE, PAGE, Move::To(at)),
            (PAGE, 2 * PAGE, Move::LeavingTo(to)),
        ] {
            assert_eq!(errno(moved(old, new, place)), 22, "{old} {new} {place:?}");
        }
    }
}
