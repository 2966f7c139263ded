//! The chunks of one pmap.

use super::PmapChunks;
use super::chunk::{Chunk, Name, Neighbours};
use machine::{Frame, Machine, Memory};
use sync::Mutex;
use sync::spin::TestAndSet;
use sync::watch::Watched;
use vm::pv::Pv;

/// A pmap's chunks (`pm_pvchunk`).
pub struct OfPmap<M: Machine>(Mutex<M, Watched<M, TestAndSet<M>, PmapChunks>, Lists>);

/// The chunks with a taken entry, those with room in front; and the empty ones.
#[derive(Default)]
struct Lists {
    first: Name,
    last: Name,
    empty: Name,
}

impl<M: Machine> OfPmap<M> {
    pub(super) fn new() -> Self {
        OfPmap(Mutex::new(Lists::default()))
    }
}

impl<M: Machine + Memory> OfPmap<M> {
    pub(super) fn has_room(&self, machine: &M) -> bool {
        let lists = self.0.lock();
        lists.empty.is_some() || lists.first_with_room(machine).is_some()
    }

    /// Adds a chunk whose entries are all free.
    pub(super) fn add(&self, machine: &M, frame: Frame) {
        self.0.lock().link_first(machine, frame);
    }

    /// Takes an entry for `address`. The pmap has a free one.
    pub(super) fn take(&self, machine: &M, address: usize) -> Pv {
        let mut lists = self.0.lock();
        let frame = lists.first_with_room(machine);
        let frame = frame.unwrap_or_else(|| lists.use_empty(machine));
        // SAFETY: a chunk of this pmap, whose lock is held.
        let own = unsafe { Chunk::own(machine, frame) };
        let entry = own.take();
        if !own.has_room() {
            lists.unlink(machine, frame);
            lists.link_last(machine, frame);
        }
        // SAFETY: a chunk of this pmap, whose lock is held, and the entry was free.
        unsafe { Chunk::begin(machine, frame, entry, address) }
    }

    /// Frees an entry of this pmap.
    pub(super) fn give(&self, machine: &M, pv: Pv) {
        let mut lists = self.0.lock();
        let frame = pv.frame;
        // SAFETY: a chunk of this pmap, whose lock is held.
        let own = unsafe { Chunk::own(machine, frame) };
        own.give(Chunk::<M>::place(pv));
        let is_empty = own.is_empty();
        if is_empty || lists.first != Some(frame) {
            lists.unlink(machine, frame);
            if is_empty {
                lists.link_empty(machine, frame)
            } else {
                lists.link_first(machine, frame)
            }
        }
    }

    /// Removes the empty chunks. Returns the first, which links to the others.
    pub(super) fn take_empty(&self) -> Name {
        self.0.lock().empty.take()
    }

    /// Calls `see` with the addresses of `chunk`, if it belongs to this pmap; otherwise with those
    /// of the first chunk, which becomes the last.
    pub(super) fn see(&self, machine: &M, chunk: Name, see: impl FnMut(usize)) {
        let mut lists = self.0.lock();
        let Some(frame) = lists.find(machine, chunk) else {
            return;
        };
        if chunk.is_none() {
            lists.unlink(machine, frame);
            lists.link_last(machine, frame);
        }
        // SAFETY: a chunk of this pmap, whose lock is held; taken entries keep their addresses.
        unsafe {
            let taken = Chunk::look(machine, frame).taken();
            let index = |entry: usize| Pv {
                frame,
                index: Chunk::<M>::index(entry),
            };
            taken
                .map(|entry| Chunk::address(machine, index(entry)))
                .for_each(see);
        }
    }
}

impl Lists {
    /// The first chunk, if it has room. In FreeBSD's order, if the first has none, none has.
    fn first_with_room<M: Machine + Memory>(&self, machine: &M) -> Name {
        // SAFETY: chunks on the list are the pmap's, whose lock is held.
        let has_room = |&frame: &Frame| unsafe { Chunk::look(machine, frame) }.has_room();
        self.first.filter(has_room)
    }

    /// Puts an empty chunk into use. The pmap has one.
    fn use_empty<M: Machine + Memory>(&mut self, machine: &M) -> Frame {
        let frame = self.empty.expect("a chunk with room");
        self.empty = Chunk::next(machine, frame);
        self.link_first(machine, frame);
        frame
    }

    /// `chunk` if it is on the list; the first chunk if `chunk` is `None`.
    fn find<M: Machine + Memory>(&self, machine: &M, chunk: Name) -> Name {
        let mut at = self.first;
        while at.is_some() && chunk.is_some() && at != chunk {
            at = Chunk::next(machine, at?);
        }
        at
    }

    fn link_first<M: Machine + Memory>(&mut self, machine: &M, frame: Frame) {
        // SAFETY: chunks of the pmap, whose lock is held.
        unsafe {
            Chunk::own(machine, frame).list = Neighbours::of(self.first, None);
            match self.first {
                Some(next) => Chunk::own(machine, next).list.set_previous(Some(frame)),
                None => self.last = Some(frame),
            }
        }
        self.first = Some(frame);
    }

    fn link_last<M: Machine + Memory>(&mut self, machine: &M, frame: Frame) {
        // SAFETY: chunks of the pmap, whose lock is held.
        unsafe {
            Chunk::own(machine, frame).list = Neighbours::of(None, self.last);
            match self.last {
                Some(previous) => Chunk::own(machine, previous).list.set_next(Some(frame)),
                None => self.first = Some(frame),
            }
        }
        self.last = Some(frame);
    }

    fn link_empty<M: Machine + Memory>(&mut self, machine: &M, frame: Frame) {
        // SAFETY: a chunk of the pmap, whose lock is held.
        unsafe { Chunk::own(machine, frame).list.set_next(self.empty) };
        self.empty = Some(frame);
    }

    fn unlink<M: Machine + Memory>(&mut self, machine: &M, frame: Frame) {
        // SAFETY: chunks of the pmap, whose lock is held.
        unsafe {
            let list = Chunk::look(machine, frame).list;
            match list.previous() {
                Some(previous) => Chunk::own(machine, previous).list.set_next(list.next()),
                None => self.first = list.next(),
            }
            match list.next() {
                Some(next) => Chunk::own(machine, next).list.set_previous(list.previous()),
                None => self.last = list.previous(),
            }
        }
    }
}
