//! Retries of operations that ran out of frames.

use super::tables::ROUNDS;
use crate::error::{Error, Resource};
use crate::system::System;
use crate::vm::Vm;

/// The number of frames that an operation without memory asks to be freed; it doubles with each
/// try.
const DIRECT: usize = 32;

/// The number of tries that reclaim pages.
const TRIES: u32 = 16;

/// The number of tries after a look at all pages has freed fewer than requested. Then the only
/// pages left to free are those that the operation itself brings in.
const SHORT: u32 = 4;

/// The tries of an operation so far.
#[derive(Default)]
struct Tries {
    pages: u32,
    short: u32,
    tables: u32,
    chunks: u32,
}

impl<S: System> Vm<S> {
    /// Does `operation`, which changes nothing if it fails, again as long as it fails for lack of
    /// frames and some can be freed. The caller holds no lock of the VM's.
    #[inline]
    pub(crate) fn with_frames<R>(
        &self,
        operation: impl FnMut() -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.with_frames_since(self.hand().freed(), operation)
    }

    /// Tries an operation, and again after reclaim if it lacks frames; it began when `before`
    /// frames had been freed.
    #[inline]
    pub(crate) fn with_frames_since<R>(
        &self,
        before: usize,
        mut operation: impl FnMut() -> Result<R, Error>,
    ) -> Result<R, Error> {
        match operation() {
            Err(Error::OutOfMemory(Resource::Frames)) => self.with_more_frames(before, operation),
            result => result,
        }
    }

    /// Tries an operation that has failed again, after reclaim. A function of its own, so that the
    /// first try is no part of a loop.
    #[cold]
    #[inline(never)]
    fn with_more_frames<R>(
        &self,
        mut before: usize,
        mut operation: impl FnMut() -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut tries = Tries::default();
        while self.relieve(before, &mut tries) {
            before = self.hand().freed();
            match operation() {
                Err(Error::OutOfMemory(Resource::Frames)) => {}
                result => return result,
            }
        }
        Err(Error::OutOfMemory(Resource::Frames))
    }

    /// Frees frames, or waits for a task that does. Returns false if neither is possible. `before`
    /// is the number of frames freed before the caller tried.
    fn relieve(&self, before: usize, tries: &mut Tries) -> bool {
        self.relieve_of_pages(before, tries)
            || self.relieve_of_tables(tries)
            || self.relieve_of_chunks(tries)
            || self.ask(tries)
    }

    /// Frees pages, unless that has failed to help too often.
    fn relieve_of_pages(&self, before: usize, tries: &mut Tries) -> bool {
        let wanted = DIRECT << tries.pages;
        tries.pages += 1;
        if tries.pages > TRIES || tries.short == SHORT {
            return false;
        }
        let freed = self.reclaim(wanted);
        if freed == 0 {
            // Other tasks may be freeing the pages that cannot be freed here.
            return self.hand().wait(before);
        }
        tries.short += u32::from(freed < wanted);
        true
    }

    /// Frees tables, unless that did not help before.
    fn relieve_of_tables(&self, tries: &mut Tries) -> bool {
        let wanted = DIRECT << tries.tables;
        tries.tables += 1;
        tries.tables <= ROUNDS && self.reclaim_tables(wanted) > 0
    }

    /// Frees chunks of PV entries, if there are any, unless that did not help before. The search
    /// for pages may have emptied some without freeing a page.
    fn relieve_of_chunks(&self, tries: &mut Tries) -> bool {
        let wanted = DIRECT << tries.chunks;
        tries.chunks += 1;
        self.pv_chunks().is_some()
            && tries.chunks <= ROUNDS
            && (self.reclaim_chunks(wanted) > 0 || self.frames().free_count() > 0)
    }

    /// Frees frames, as a page daemon does, until `target` are free, or no more can be freed.
    /// Returns the number of frames freed.
    pub fn keep_free(&self, target: usize) -> usize {
        let short = target.saturating_sub(self.frames().free_count());
        match short {
            0 => 0,
            short => self.reclaim(short),
        }
    }

    fn ask(&self, tries: &mut Tries) -> bool {
        *tries = Tries::default();
        self.out_of_memory().is_some_and(|ask| ask())
    }
}
