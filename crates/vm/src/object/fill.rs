//! Filling an entry: reading a page in, with its neighbours, or making one of zeroes.

use super::entry::{Owned, Value};
use super::page::{PageRef, Pattern};
use super::{Backing, Object};
use crate::error::Error;
use crate::frames::Content;
use crate::page::{Identity, Page};
use crate::system::System;
use core::array;
use core::ops::Range;
use machine::{Atomics, Frame, Ordering, PAGE_SIZE};

/// The most pages that are read at once.
const CLUSTER: usize = 16;
/// Pages below one leaf table of the hardware: faults below other tables are left alone.
const TABLE: u64 = 512;

/// An entry that is being filled and the page it will have. Dropping it leaves the entry
/// as it was.
struct Filling<'a, S: System> {
    page: PageRef<'a, S>,
    owned: Owned<'a, S::Machine>,
}

/// Adjacent entries that are being filled together.
struct Cluster<'a, S: System> {
    /// The index of the first entry.
    start: u64,
    places: [Option<Filling<'a, S>>; CLUSTER],
}

impl<S: System> Object<S> {
    /// Fills the entry of `index`, which is owned and has no page, if `pages` is greater than
    /// `index`; returns its page.
    pub(super) fn fill<'a>(
        &'a self,
        index: u64,
        owned: Owned<'a, S::Machine>,
        pattern: Pattern,
        pages: &impl Fn() -> u64,
    ) -> Result<PageRef<'a, S>, Error> {
        debug_assert!(
            !matches!(owned.value, Value::Frame(_)),
            "an entry that has a page is filled"
        );
        if let Value::Slot(slot) = owned.value {
            self.check_size(index, pages)?;
            return self.swap_in(slot, owned);
        }
        match &self.backing {
            // Behind the end there is nothing to read: the object is about to grow.
            Backing::Store(_) if index < self.pages() => self.read_in(index, owned, pattern, pages),
            _ => {
                self.check_size(index, pages)?;
                let filling = self.begin(owned, Content::Zeroed)?;
                Ok(self.publish(filling))
            }
        }
    }

    /// Fails if `index`, whose entry is owned, is behind the object's end: a truncation that is not
    /// seen here waits for the owner.
    fn check_size(&self, index: u64, pages: &impl Fn() -> u64) -> Result<(), Error> {
        // Pairs with the fence in `truncate`.
        S::Machine::fence(Ordering::SeqCst);
        if index < pages() {
            Ok(())
        } else {
            Err(Error::Bus { page: index })
        }
    }

    /// Allocates a frame for an owned entry.
    fn begin<'a>(
        &'a self,
        owned: Owned<'a, S::Machine>,
        content: Content,
    ) -> Result<Filling<'a, S>, Error> {
        let frame = self.vm.allocate_page(content)?;
        let page = PageRef::new(&self.vm, frame);
        Ok(Filling { page, owned })
    }

    /// Stores the page in its entry, and returns one more reference to the caller.
    fn publish<'a>(&'a self, filling: Filling<'a, S>) -> PageRef<'a, S> {
        let Filling { page, mut owned } = filling;
        let descriptor = self.vm.page(page.frame());
        machine::invariant!(
            S::Machine: descriptor.identity() == Identity::Private,
            "a page gets a second object"
        );
        descriptor.set_identity(Identity::Object(owned.address()));
        descriptor.retain();
        owned.value = Value::Frame(page.frame());
        page
    }

    /// Reads a page from the swap space. The slot is free afterwards, so the page is dirty: its
    /// content must not be lost.
    fn swap_in<'a>(
        &'a self,
        slot: u32,
        owned: Owned<'a, S::Machine>,
    ) -> Result<PageRef<'a, S>, Error> {
        let slots = self.slots().expect("a slot is of some slots");
        let filling = self.begin(owned, Content::Any)?;
        let frame = filling.page.frame();
        // SAFETY: a new page of this VM, which no other task knows.
        let read = unsafe { slots.read(self.vm.machine(), slot, frame) };
        read.map_err(Error::Io)?;
        self.mark_dirty(frame);
        let page = self.publish(filling);
        // SAFETY: the entry named the slot, and names the page now.
        unsafe { slots.free(slot) };
        Ok(page)
    }

    /// Marks the page in `frame` as different from its copy in the store or the swap space.
    pub(super) fn mark_dirty(&self, frame: Frame) {
        self.vm.lock_pv(frame).set_flags(Page::<S>::DIRTY);
    }

    /// Reads the page at `index` from the store, and absent neighbours with it.
    fn read_in<'a>(
        &'a self,
        index: u64,
        owned: Owned<'a, S::Machine>,
        pattern: Pattern,
        pages: &impl Fn() -> u64,
    ) -> Result<PageRef<'a, S>, Error> {
        let window = window(index, pattern);
        let mut cluster = Cluster::new(window.start);
        cluster.put(index, self.begin(owned, Content::Any)?);
        self.gather(&mut cluster, index + 1..window.end);
        self.gather(&mut cluster, (window.start..index).rev());
        self.check_size(index, pages)?;
        // This read of the size decides about the neighbours, too.
        cluster.cut(pages().max(index + 1));
        let (run, alone) = (cluster.run(index), index..index + 1);
        debug_assert!(
            run.contains(&index),
            "the run leaves out the page to be read"
        );
        match self.transfer(&cluster, run.clone()) {
            Err(_) if run != alone => {
                // A neighbour's failure must not be this page's.
                cluster.keep_only(index);
                self.transfer(&cluster, alone)?;
            }
            done => done?,
        }
        Ok(self.publish_all(cluster, index))
    }

    /// Adds the entries of `indices` to the cluster, up to the first that is not absent,
    /// or for which there is no frame or no leaf.
    fn gather<'a>(&'a self, cluster: &mut Cluster<'a, S>, indices: impl Iterator<Item = u64>) {
        for index in indices {
            let entry = self.tree.find(index);
            let owned = entry.and_then(|e| e.try_own(|value| value == Value::Absent));
            let Some(owned) = owned else { return };
            let Ok(filling) = self.begin(owned, Content::Any) else {
                return;
            };
            cluster.put(index, filling);
        }
    }

    /// Reads the pages of `run`, which are all in the cluster, and zeroes the bytes behind the
    /// object's end.
    fn transfer(&self, cluster: &Cluster<'_, S>, run: Range<u64>) -> Result<(), Error> {
        let Backing::Store(store) = &self.backing else {
            unreachable!("only a file is read")
        };
        debug_assert!(!run.is_empty(), "nothing is read");
        let mut frames = [Frame(0); CLUSTER];
        let count = run.clone().count();
        for (frame, index) in frames.iter_mut().zip(run.clone()) {
            *frame = cluster.frame(index).expect("all of the run");
        }
        let (machine, frames) = (self.vm.machine(), &frames[..count]);
        // SAFETY: new pages of this VM, which no other task knows.
        let read = unsafe { store.read(machine, run.start, frames) };
        read.map_err(Error::Io)?;
        let size = self.size();
        for (&frame, index) in frames.iter().zip(run) {
            let inside = size.saturating_sub(index * PAGE_SIZE as u64);
            let inside = inside.min(PAGE_SIZE as u64) as usize;
            // SAFETY: as above.
            unsafe { super::bytes::zero_from(machine, frame, inside) };
        }
        Ok(())
    }

    /// Stores the pages of the cluster in their entries; returns that of `index`.
    fn publish_all<'a>(&'a self, cluster: Cluster<'a, S>, index: u64) -> PageRef<'a, S> {
        let mut found = None;
        for (at, place) in (cluster.start..).zip(cluster.places) {
            let page = place.map(|filling| self.publish(filling));
            if at == index {
                found = page;
            }
        }
        found.expect("the cluster has the page it is for")
    }
}

impl<'a, S: System> Cluster<'a, S> {
    fn new(start: u64) -> Self {
        Cluster {
            start,
            places: array::from_fn(|_| None),
        }
    }

    fn put(&mut self, index: u64, filling: Filling<'a, S>) {
        debug_assert!(self.frame(index).is_none(), "page {index} is read twice");
        self.places[(index - self.start) as usize] = Some(filling);
    }

    fn frame(&self, index: u64) -> Option<Frame> {
        let place = index.checked_sub(self.start)?;
        let filling = self.places.get(place as usize)?.as_ref()?;
        Some(filling.page.frame())
    }

    /// The run of the cluster's indices around `index`, without a gap.
    fn run(&self, index: u64) -> Range<u64> {
        let has = |&index: &u64| self.frame(index).is_some();
        let below = (self.start..index).rev().take_while(has).count() as u64;
        let above = (index..).take_while(has).count() as u64;
        index - below..index + above
    }

    /// Drops the pages from `end` on.
    fn cut(&mut self, end: u64) {
        for (index, place) in (self.start..).zip(&mut self.places) {
            if index >= end {
                *place = None;
            }
        }
    }

    /// Drops all pages but `index`.
    fn keep_only(&mut self, index: u64) {
        for (at, place) in (self.start..).zip(&mut self.places) {
            if at != index {
                *place = None;
            }
        }
    }
}

/// The indices that may be read with `index`.
fn window(index: u64, pattern: Pattern) -> Range<u64> {
    let cluster = CLUSTER as u64;
    match pattern {
        Pattern::Random => index..index + 1,
        Pattern::Normal => {
            let start = index / cluster * cluster;
            start..start + cluster
        }
        Pattern::Sequential => index..(index + cluster).min((index / TABLE + 1) * TABLE),
    }
}
