//! The PV lists of neighbouring pages, locked together.

use crate::page::{Page, PvList};
use crate::system::System;
use core::marker::PhantomData;
use core::ops::Range;

/// Neighbouring pages.
pub(crate) trait PageAt<'a, S: System> {
    /// The page at `index`.
    fn at(&self, index: usize) -> &'a Page<S>;

    /// Locks the list of the first page, for observers to see.
    fn lock_first(&self) -> PvList<'a, S>;

    /// Locks the list of the first page, if that needs no waiting.
    fn try_lock_first(&self) -> Option<PvList<'a, S>>;

    /// Returns true if one lock protects the lists of all.
    fn have_one_lock(&self) -> bool;
}

/// The PV lists of the pages `0 .. count`, locked, without one that the caller may have locked.
///
/// They are locked one by one in ascending order, so two runs of the same pages cannot wait for
/// each other. The locks themselves record that they are held, so the run is as small for 512 pages
/// as for two. If one lock protects all lists, only that is taken; it is held to the end.
pub(crate) struct PvRun<'a, S: System, A: PageAt<'a, S>> {
    pages: A,
    /// The first page's list, which observers see.
    first: Option<PvList<'a, S>>,
    /// The other pages whose lists are locked.
    held: Range<usize>,
    /// The page of `held` whose list the caller has.
    but: Option<usize>,
    page: PhantomData<&'a Page<S>>,
}

impl<'a, S: System, A: PageAt<'a, S>> PvRun<'a, S, A> {
    /// Locks `count` pages, at least one, while the caller holds the slot that they are mapped in.
    #[track_caller]
    pub(super) fn lock(pages: A, count: usize) -> Self {
        debug_assert!(count > 0, "a run has a page");
        let first = Some(pages.lock_first());
        let mut held = 0..count;
        if !pages.have_one_lock() {
            for index in 1..count {
                PvList::<S>::lock_more(pages.at(index)).keep();
            }
            held.start = 1;
        }
        PvRun {
            pages,
            first,
            held,
            but: None,
            page: PhantomData,
        }
    }

    /// Locks `count` pages, if that needs no waiting.
    #[track_caller]
    pub(super) fn try_lock(pages: A, count: usize) -> Option<Self> {
        let first = Some(pages.try_lock_first()?);
        let has_all = pages.have_one_lock();
        let mut run = PvRun {
            pages,
            first,
            held: if has_all { 0..count } else { 1..1 },
            but: None,
            page: PhantomData,
        };
        for index in run.held.end..count {
            PvList::<S>::try_lock_more(run.pages.at(index))?.keep();
            run.held.end = index + 1;
        }
        Some(run)
    }

    /// Locks the lists of `count` pages without the one at `but`, whose list the caller has, if
    /// that needs no waiting.
    pub(super) fn try_around(pages: A, count: usize, but: usize) -> Option<Self> {
        debug_assert!(but < count, "the caller has a page of the run");
        let has_all = pages.have_one_lock();
        let mut run = PvRun {
            pages,
            first: None,
            held: 0..if has_all { count } else { 0 },
            but: Some(but),
            page: PhantomData,
        };
        for index in run.held.end..count {
            if index != but {
                PvList::<S>::try_lock_more(run.pages.at(index))?.keep();
            }
            run.held.end = index + 1;
        }
        Some(run)
    }

    /// The lowest page whose list has not been popped, and the list, which is the caller's now.
    ///
    /// # Safety
    /// The list goes before the run does.
    pub(super) unsafe fn pop(&mut self) -> Option<(usize, PvList<'a, S>)> {
        let has_all = self.pages.have_one_lock();
        if !has_all && let Some(first) = self.first.take() {
            return Some((0, first));
        }
        let index = self.held.find(|&index| Some(index) != self.but)?;
        let page = self.pages.at(index);
        // SAFETY: the one lock is this run's or its caller's, longer than the list lives; or the
        // list was kept locked by this run, which has given up the index just now.
        let list = unsafe {
            if has_all {
                PvList::of_other(page)
            } else {
                PvList::kept(page)
            }
        };
        Some((index, list))
    }
}

impl<'a, S: System, A: PageAt<'a, S>> Drop for PvRun<'a, S, A> {
    fn drop(&mut self) {
        // SAFETY: the list is dropped at once, before the run is.
        while unsafe { self.pop() }.is_some() {}
    }
}
