//! A request for a mapping.

use crate::error::Error;
use crate::flags::Flags;
use crate::object::ObjectRef;
use crate::prot::Prot;
use crate::system::System;
use machine::PAGE_SIZE;

/// The requested place of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Any place with room.
    Anywhere,
    /// Here if there is room, otherwise anywhere.
    Hint(usize),
    /// Here, and replaces whatever is mapped there (`MAP_FIXED`).
    Fixed(usize),
    /// Here, or nowhere (`MAP_FIXED_NOREPLACE`).
    Free(usize),
}

/// A request of `mmap`; made by [`Request::anonymous`] or [`Request::object`], and
/// changed from there. Private and readable on demand, unless said otherwise.
#[must_use = "a request does nothing until a space maps it"]
pub struct Request<'a, S: System> {
    pub(super) bytes: usize,
    pub(super) at: At,
    pub(super) flags: Flags,
    pub(super) populate: bool,
    /// The object to be mapped, and its first page to be mapped.
    pub(super) object: Option<(&'a ObjectRef<S>, u64)>,
}

impl<'a, S: System> Request<'a, S> {
    /// `bytes` (rounded up to pages) of zeroes.
    pub fn anonymous(bytes: usize, prot: Prot) -> Self {
        Request {
            bytes,
            at: At::Anywhere,
            flags: Flags::new(prot),
            populate: false,
            object: None,
        }
    }

    /// `bytes` (rounded up to pages) of `object` from its byte `offset` on.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `offset` is no multiple of the page size.
    pub fn object(
        object: &'a ObjectRef<S>,
        offset: u64,
        bytes: usize,
        prot: Prot,
    ) -> Result<Self, Error> {
        if !offset.is_multiple_of(PAGE_SIZE as u64) {
            let reason = "the offset is not page-aligned";
            return Err(Error::Invalid { reason });
        }
        Ok(Request {
            object: Some((object, offset / PAGE_SIZE as u64)),
            ..Self::anonymous(bytes, prot)
        })
    }

    /// Makes the mapping shared: stores reach all that map the object (`MAP_SHARED`).
    pub fn shared(mut self) -> Self {
        self.flags = self.flags | Flags::SHARED;
        self
    }

    /// Sets the place.
    pub fn at(mut self, at: At) -> Self {
        self.at = at;
        self
    }

    /// Adds `flags`. Rights, [`Flags::SHARED`], [`Flags::CHARGED`] and [`Flags::WIPE_ON_FORK`] are
    /// ignored.
    pub fn with(mut self, flags: Flags) -> Self {
        self.flags = self.flags | flags.only(Flags::REQUESTED);
        self
    }

    /// Makes its pages be in memory when the call returns (`MAP_POPULATE`), up to the first that is
    /// not available.
    pub fn populated(mut self) -> Self {
        self.populate = true;
        self
    }
}
