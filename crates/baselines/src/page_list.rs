//! Lists of pages, linked through the pages themselves, as in kernels: inserting or removing a page
//! writes its neighbours' cache lines.

use alloc::boxed::Box;
use machine::{Machine, SharedCell};
use vm::Error;
use vm::heap::filled;

/// The index that stands for no page.
const NONE: u32 = u32::MAX;

/// The ends of a list. The user provides its lock.
pub(crate) struct Ends {
    first: u32,
    last: u32,
}

/// The links of all pages, each in one list at most, and a state `S` of each.
pub(crate) struct PageLinks<M: Machine, S = ()>(Box<[Link<M, S>]>);

/// A page's neighbours, on a cache line of their own, as a page's descriptor is at least that
/// large.
#[repr(align(64))]
struct Link<M: Machine, S>(M::Cell<Neighbours>, S);

struct Neighbours {
    queued: bool,
    before: u32,
    after: u32,
}

impl Ends {
    /// The ends of an empty list.
    pub(crate) const EMPTY: Ends = Ends {
        first: NONE,
        last: NONE,
    };
}

/// The caller of each method with `ends` holds the lock of that list, and the page is in no other
/// list.
impl<M: Machine, S> PageLinks<M, S> {
    pub(crate) fn new(frames: usize, state: impl Fn() -> S) -> Result<Self, Error> {
        let alone = || Neighbours {
            queued: false,
            before: NONE,
            after: NONE,
        };
        let links = filled(frames, || Link(SharedCell::new(alone()), state()))?;
        Ok(PageLinks(links))
    }

    pub(crate) fn label(&self, what: &'static str) {
        M::label_value(&*self.0, what);
    }

    pub(crate) fn state(&self, page: u32) -> &S {
        &self.0[page as usize].1
    }

    /// The pages, from the first on.
    pub(crate) fn iter<'a>(&'a self, ends: &'a M::Cell<Ends>) -> impl Iterator<Item = u32> + 'a {
        // SAFETY: the caller holds the list's lock.
        let first = unsafe { (*ends.read()).first };
        let some = |page: u32| (page != NONE).then_some(page);
        core::iter::successors(some(first), move |&page| {
            // SAFETY: the caller holds the list's lock.
            some(unsafe { (*self.0[page as usize].0.read()).after })
        })
    }

    /// Removes the page from the list, if it is there.
    pub(crate) fn dequeue(&self, ends: &M::Cell<Ends>, page: u32) {
        // SAFETY: the caller holds the list's lock, which guards the links of its pages.
        let link = unsafe { &mut *self.0[page as usize].0.write() };
        if !link.queued {
            return;
        }
        link.queued = false;
        let (before, after) = (link.before, link.after);
        self.join(ends, before, after);
    }

    /// Appends the page, which is in no list.
    pub(crate) fn enqueue(&self, ends: &M::Cell<Ends>, page: u32) {
        // SAFETY: the caller holds the list's lock, which guards the ends.
        let last = unsafe { (*ends.write()).last };
        self.join(ends, last, page);
        self.join(ends, page, NONE);
        // SAFETY: the caller holds the list's lock, which guards the links of its pages.
        unsafe { (*self.0[page as usize].0.write()).queued = true };
    }

    /// Makes `after` follow `before`; either may be the end of the list.
    fn join(&self, ends: &M::Cell<Ends>, before: u32, after: u32) {
        // SAFETY: the caller holds the list's lock, which guards the ends and the links of its
        // pages.
        unsafe {
            match self.0.get(before as usize) {
                Some(link) => (*link.0.write()).after = after,
                None => (*ends.write()).first = after,
            }
            match self.0.get(after as usize) {
                Some(link) => (*link.0.write()).before = before,
                None => (*ends.write()).last = before,
            }
        }
    }
}
