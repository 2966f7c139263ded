//! A request for a mapping.

use crate::error::Error;
use crate::flags::Flags;
use crate::object::ObjectRef;
use crate::prot::Prot;
use crate::system::System;
use machine::PAGE_SIZE;

/// Where a mapping is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Where there is room.
    Anywhere,
    /// Here if there is room, otherwise anywhere.
    Hint(usize),
    /// Here, in the place of whatever is there (`MAP_FIXED`).
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
    /// The object to be mapped, and from which of its pages on.
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

    /// Stores reach all that map the object (`MAP_SHARED`).
    pub fn shared(mut self) -> Self {
        self.flags = self.flags | Flags::SHARED;
        self
    }

    /// Where it is to be.
    pub fn at(mut self, at: At) -> Self {
        self.at = at;
        self
    }

    /// With `flags`, of those that a request may have: [`Flags::NO_RESERVE`],
    /// [`Flags::GROWS_DOWN`], [`Flags::LOCKED`], [`Flags::ON_FAULT`], [`Flags::HUGE`],
    /// [`Flags::NO_HUGE`].
    pub fn with(mut self, flags: Flags) -> Self {
        self.flags = self.flags | flags;
        self
    }

    /// Its pages are there when the call returns (`MAP_POPULATE`), as far as there is memory.
    pub fn populated(mut self) -> Self {
        self.populate = true;
        self
    }
}
