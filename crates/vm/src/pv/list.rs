//! The list of a page's entries, linked by names.

use super::table::{PvTable, Table};
use core::ptr::NonNull;
use machine::{Frame, Machine, Memory, SharedCell};

/// The name of a PV entry: the frame that it is in, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pv {
    /// The table, or the chunk.
    pub frame: Frame,
    /// The entry's place.
    pub index: u16,
}

impl Pv {
    /// The next on the page's list.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    pub(crate) unsafe fn next<M: Machine + Memory>(self, memory: &M) -> Option<Pv> {
        // SAFETY: the caller holds the lock of the list, so the table is there, and nothing else
        // writes the links.
        unsafe { (*self.cell(memory).as_ref().read()).link(NEXT).get() }
    }

    /// The one before it on the page's list.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry.
    unsafe fn previous<M: Machine + Memory>(self, memory: &M) -> Option<Pv> {
        // SAFETY: as in `next`.
        unsafe { (*self.cell(memory).as_ref().read()).link(PREVIOUS).get() }
    }

    /// The entry's links, to be written.
    ///
    /// # Safety
    /// The caller holds the PV lock of the page that lists the entry, or is about to.
    #[inline]
    unsafe fn links<M: Machine + Memory>(self, memory: &M) -> *mut Links {
        // SAFETY: the table is there.
        unsafe { self.cell(memory).as_ref().write() }
    }

    /// # Safety
    /// The table is there.
    #[inline]
    unsafe fn cell<M: Machine + Memory>(self, memory: &M) -> NonNull<M::Cell<Links>> {
        let table = PvTable::at(memory, self.frame).as_ptr();
        // SAFETY: the table is there, with an entry at the index; or a chunk, as
        // `crate::pv` says.
        unsafe {
            let entries = (&raw mut (*table).entries).cast::<M::Cell<Links>>();
            NonNull::new_unchecked(entries.add(usize::from(self.index)))
        }
    }
}

/// A [`Pv`], or none.
#[derive(Clone, Copy)]
struct Link {
    table: Table,
    index: u16,
}

impl Link {
    const NONE: Self = Link {
        table: Table::NONE,
        index: 0,
    };

    const fn of(pv: Pv) -> Self {
        Link {
            table: Table::of(pv.frame),
            index: pv.index,
        }
    }

    fn get(self) -> Option<Pv> {
        let index = self.index;
        self.table.get().map(|frame| Pv { frame, index })
    }
}

/// The head of a page's list. Every method needs the page's PV lock.
pub(crate) struct PvHead(Link);

impl PvHead {
    pub(crate) const EMPTY: Self = PvHead(Link::NONE);

    pub(crate) fn first(&self) -> Option<Pv> {
        self.0.get()
    }

    /// The list of `pv` only.
    ///
    /// # Safety
    /// The table of `pv` is there, it is on no list, and the lock of the slot that has the table is
    /// held; the list is that of a page that no other task knows.
    #[inline]
    pub(crate) unsafe fn only<M: Machine + Memory>(memory: &M, pv: Pv) -> Self {
        // SAFETY: the entry is the caller's.
        unsafe { *pv.links(memory) = Links::NONE };
        PvHead(Link::of(pv))
    }

    /// Puts `pv` in front of the list.
    ///
    /// # Safety
    /// The PV lock is held; the table of `pv` is there, and it is on no list.
    pub(crate) unsafe fn insert<M: Machine + Memory>(&mut self, memory: &M, pv: Pv) {
        // SAFETY: the entry is the caller's, its successor is under the same PV lock.
        unsafe {
            machine::invariant!(
                M: self.first().is_none_or(|first| first != pv && first.previous(memory).is_none()),
                "{pv:?} is on the list already, or that begins elsewhere"
            );
            *pv.links(memory) = Links::before(self.0);
            if let Some(next) = self.first() {
                (*next.links(memory)).set(PREVIOUS, Link::of(pv));
            }
        }
        self.0 = Link::of(pv);
    }

    /// Returns true if the neighbours that `pv` names, or the head, name it.
    ///
    /// # Safety
    /// The PV lock is held; `pv` is on this list.
    unsafe fn leads_to<M: Machine + Memory>(
        &self,
        memory: &M,
        pv: Pv,
        next: Link,
        previous: Link,
    ) -> bool {
        // SAFETY: the neighbours are on the list, as the caller says.
        unsafe {
            let before = match previous.get() {
                Some(previous) => previous.next(memory),
                None => self.first(),
            };
            before == Some(pv) && (next.get()).is_none_or(|next| next.previous(memory) == Some(pv))
        }
    }

    /// Takes `pv` off the list.
    ///
    /// # Safety
    /// The PV lock is held; `pv` is on this list.
    #[inline]
    pub(crate) unsafe fn remove<M: Machine + Memory>(&mut self, memory: &M, pv: Pv) {
        // SAFETY: the entry and its neighbours are on the list, under the PV lock.
        unsafe {
            let links = pv.cell(memory).as_ref().read();
            let (next, previous) = ((*links).link(NEXT), (*links).link(PREVIOUS));
            machine::invariant!(
                M: self.leads_to(memory, pv, next, previous),
                "{pv:?} is not on the list that it is taken off"
            );
            match previous.get() {
                Some(previous) => (*previous.links(memory)).set(NEXT, next),
                None => self.0 = next,
            }
            if let Some(next) = next.get() {
                (*next.links(memory)).set(PREVIOUS, previous);
            }
        }
    }
}

/// An entry: its neighbours on the page's list, as links whose parts are laid out to take 12 bytes.
/// Protected by the page's PV lock.
pub struct Links {
    tables: [Table; 2],
    indices: [u16; 2],
}

const NEXT: usize = 0;
const PREVIOUS: usize = 1;

impl Links {
    /// The links of an entry that is on no list.
    pub const NONE: Self = Links {
        tables: [Table::NONE; 2],
        indices: [0; 2],
    };

    /// The links of an entry in front of `next`.
    const fn before(next: Link) -> Self {
        Links {
            tables: [next.table, Table::NONE],
            indices: [next.index, 0],
        }
    }

    const fn link(&self, which: usize) -> Link {
        Link {
            table: self.tables[which],
            index: self.indices[which],
        }
    }

    fn set(&mut self, which: usize, link: Link) {
        self.tables[which] = link.table;
        self.indices[which] = link.index;
    }
}
