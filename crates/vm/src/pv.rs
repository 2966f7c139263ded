//! PV entries, as policies of [`crate::policy::PvChunks`] keep them.
//!
//! Wherever an entry is, the VM links it to its neighbours on a page's list by its name, a [`Pv`]: in
//! the frame the entry's links begin [`links_at`] bytes from the start, plus the index times the size of
//! a cell of [`Links`]. The tables of the VM's own have nothing else there; a chunk has more in
//! each entry, and so passes over some indices.

pub use crate::pmap::{Links, Pv, links_at};
