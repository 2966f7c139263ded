//! PV entries, which record a page's mappings.
//!
//! An entry is 12 bytes, at a place that follows from its address: each slot has up to two
//! *PV tables*, one frame for each MiB, with an entry for each page. So an entry need not record
//! its mapping's address or space: they follow from its place in the table, and the table's header.
//! An entry is in use if the leaf table's entry of the same index maps a page. A page's entries
//! form a list, linked both ways, under the page's PV lock; it is never searched.
//!
//! # Protocol
//! - A table is made under its slot's lock before the first mapping of its MiB ([`Pmap::prepare`])
//!   and freed under that lock, or with the pmap, when the slot has no page mapped.
//! - An entry's links are protected by the PV lock of the page that lists it.
//! - A header is read only under the lock of a slot that has the table, or under the PV lock of a
//!   page that lists an entry of it: then there is a mapping, so table and leaf table stay.
//!   A task that frees a table has taken its last entry off a list, under that list's lock, after
//!   such a reader.
//! - The *family* of the slot's first table says which slots have the tables, one or several, under
//!   its lock (the pmap's module `shared`); or it is of *kin*, whose leaf tables are their own
//!   (module `kin`).
//!
//! Links are names ([`Pv`]), not pointers: a frame's number and an index.
//!
//! [`Pmap::prepare`]: crate::Pmap
//!
//! # Entries of policies
//! Wherever an entry is, the VM links it to its neighbours on a page's list by its name, a [`Pv`]:
//! in the frame the entry's links begin [`links_at`] bytes from the start, plus the index times the
//! size of a cell of [`Links`]. The tables of the VM's own have nothing else there; a chunk has
//! more in each entry, and so passes over some indices.

mod family;
mod kin;
mod list;
mod table;

pub(crate) use family::{FamilyRef, LockedFamily, Owner};
pub(crate) use list::PvHead;
pub use list::{Links, Pv};
pub use table::links_at;
pub(crate) use table::{Kin, Pages, PvTables, Table};
