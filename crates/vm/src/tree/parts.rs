//! Iteration over held slots.

use super::extent::Mapped;
use super::part::Part;
use super::places::Places;
use super::{Place, Tree};
use crate::error::Error;
use crate::system::System;
use core::convert::Infallible;
use machine::VaRange;

/// The held slots that a range overlaps, in order, each with the part of the range in it. Most
/// ranges have one, so the walk to the others begins only when needed.
pub(crate) struct Parts<'a, S: System> {
    pub(super) tree: &'a Tree<S>,
    pub(super) range: VaRange,
    /// The slot at the range's start, if it is known and has not been visited.
    pub(super) first: Option<Place<'a, S>>,
    /// The address at which the part of `first` ends, or the range starts.
    pub(super) end_of_first: usize,
    pub(super) rest: Option<Places<'a, S>>,
}

impl<'a, S: System> Parts<'a, S> {
    /// The parts of a range that begins in `first`; all of its slots are held.
    #[inline]
    pub(super) fn from(tree: &'a Tree<S>, first: Place<'a, S>, range: VaRange) -> Self {
        debug_assert!(range.start < range.end, "parts of nothing");
        debug_assert!(
            first.range.contains(range.start),
            "{range:?} begins in another slot"
        );
        Parts {
            tree,
            range,
            first: Some(first),
            end_of_first: first.range.end,
            rest: None,
        }
    }

    /// The parts in which something is mapped. Many empty slots take little time.
    pub(crate) fn occupied(self) -> impl Iterator<Item = Part<'a, S>> {
        let range = self.range;
        let places = self.tree.occupied(range);
        places.map(move |place| Part::new(place, range))
    }

    /// Calls `visit` with each part, up to the first error. For short paths: most ranges have one
    /// part, so the code for the first stands by itself.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(crate) fn try_each<E>(
        mut self,
        mut visit: impl FnMut(Part<'a, S>) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(first) = self.first.take() {
            visit(Part::beginning(first, self.range))?;
        }
        let rest = VaRange {
            start: self.end_of_first,
            ..self.range
        };
        if rest.start < rest.end {
            Self::try_rest(self.tree, rest, &mut visit)
        } else {
            Ok(())
        }
    }

    #[inline(never)]
    fn try_rest<E>(
        tree: &'a Tree<S>,
        rest: VaRange,
        visit: &mut impl FnMut(Part<'a, S>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut places = tree.places(rest);
        places.try_for_each(|place| visit(Part::new(place, rest)))
    }

    /// Calls `visit` with each part. For short paths: the code for the first stands by itself.
    #[inline(always)] // a call here shows in tests/costs.rs
    pub(crate) fn each(self, mut visit: impl FnMut(Part<'a, S>)) {
        let Ok(()) = self.try_each(|part| {
            visit(part);
            Ok::<_, Infallible>(())
        });
    }

    /// Calls `visit` with each mapping, in order, where all of the range must be mapped.
    ///
    /// # Errors
    /// [`Error::NotMapped`] at the first address that is not mapped; or those of `visit` before it.
    #[inline]
    pub(crate) fn visit(
        self,
        mut visit: impl FnMut(Mapped<'_, S>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.try_each(|part| part.visit(&mut visit))
    }

    #[inline(never)]
    fn next_of_rest(&mut self) -> Option<Part<'a, S>> {
        let range = VaRange {
            start: self.end_of_first,
            ..self.range
        };
        let rest = self.rest.get_or_insert_with(|| self.tree.places(range));
        rest.next().map(|place| Part::new(place, self.range))
    }
}

impl<'a, S: System> Iterator for Parts<'a, S> {
    type Item = Part<'a, S>;

    #[inline(always)] // a call here shows in tests/costs.rs
    fn next(&mut self) -> Option<Part<'a, S>> {
        match self.first.take() {
            Some(first) => Some(Part::beginning(first, self.range)),
            None if self.end_of_first < self.range.end => self.next_of_rest(),
            None => None,
        }
    }
}
