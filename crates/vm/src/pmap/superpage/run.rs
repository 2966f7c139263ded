//! The PV lists of neighbouring pages, locked together.

use crate::page::{Page, PvList};
use crate::policy::Invalidation;
use core::marker::PhantomData;
use core::ops::Range;
use machine::Machine;

/// Neighbouring pages.
pub(crate) trait PageAt<'a, M: Machine, I: Invalidation<M>> {
    /// The one at `index`.
    fn at(&self, index: usize) -> &'a Page<M, I>;
}

/// The PV lists of the pages `0 .. count`, locked, but for one that the caller has.
///
/// Locked one by one in ascending order, so two of the same pages can not wait for each
/// other. The pages remember that they are locked, so the run is as small for 512 as for
/// two.
pub(crate) struct PvRun<'a, M: Machine, I: Invalidation<M>, A: PageAt<'a, M, I>> {
    pages: A,
    /// The first page's list, which observers see.
    first: Option<PvList<'a, M, I>>,
    /// The others that are locked,
    held: Range<usize>,
    /// but for this.
    but: Option<usize>,
    page: PhantomData<&'a Page<M, I>>,
}

impl<'a, M: Machine, I: Invalidation<M>, A: PageAt<'a, M, I>> PvRun<'a, M, I, A> {
    /// Locks `count` pages, at least one, for who holds the slot that they are mapped in.
    #[track_caller]
    pub(super) fn lock(pages: A, count: usize) -> Self {
        let first = Some(pages.at(0).lock_pv());
        for index in 1..count {
            pages.at(index).lock_pv_more().keep();
        }
        PvRun {
            pages,
            first,
            held: 1..count,
            but: None,
            page: PhantomData,
        }
    }

    /// Locks `count` pages but for the one at `but`, whose list the caller has, if that needs
    /// no waiting.
    pub(super) fn try_around(pages: A, count: usize, but: usize) -> Option<Self> {
        let mut run = PvRun {
            pages,
            first: None,
            held: 0..0,
            but: Some(but),
            page: PhantomData,
        };
        for index in 0..count {
            if index != but {
                run.pages.at(index).try_lock_pv_more()?.keep();
            }
            run.held.end = index + 1;
        }
        Some(run)
    }

    /// The lowest page whose list is still locked, and the list, which is the caller's now.
    pub(super) fn pop(&mut self) -> Option<(usize, PvList<'a, M, I>)> {
        if let Some(first) = self.first.take() {
            return Some((0, first));
        }
        let index = self.held.find(|&index| Some(index) != self.but)?;
        // SAFETY: kept locked by this run, which has given up the index just now.
        Some((index, unsafe { self.pages.at(index).kept_pv() }))
    }
}

impl<'a, M: Machine, I: Invalidation<M>, A: PageAt<'a, M, I>> Drop for PvRun<'a, M, I, A> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}
