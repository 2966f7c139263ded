//! What all calls have in common.

use crate::{Call, Place};

impl Call {
    /// The mapping that it makes, or, as [`Call::Break`], extends.
    pub fn made(&self) -> Option<u32> {
        match self {
            Call::Map { mapping, .. } | Call::Break { mapping, .. } => Some(*mapping),
            Call::Remap { to, .. } => *to,
            _ => None,
        }
    }

    /// The mappings that it names.
    pub fn mappings(&self) -> Vec<u32> {
        let mut call = self.clone();
        call.mappings_mut().into_iter().map(|one| *one).collect()
    }

    /// The same, to be changed.
    pub(crate) fn mappings_mut(&mut self) -> Vec<&mut u32> {
        match self {
            Call::Map { mapping, over, .. } => {
                let over = over.as_mut().map(|place| &mut place.mapping);
                [mapping].into_iter().chain(over).collect()
            }
            Call::Break { mapping, .. } => vec![mapping],
            Call::Remap { at, to, .. } => [&mut at.mapping].into_iter().chain(to).collect(),
            Call::Unmap { at, .. }
            | Call::Protect { at, .. }
            | Call::Advise { at, .. }
            | Call::Lock { at, .. }
            | Call::Unlock { at, .. }
            | Call::Sync { at, .. }
            | Call::InCore { at, .. } => vec![&mut at.mapping],
            Call::Other { .. } => Vec::new(),
        }
    }

    /// The place that it works on; that of a [`Call::Map`] is the place that it replaces.
    pub fn at(&self) -> Option<Place> {
        match self {
            Call::Map { over, .. } => *over,
            Call::Unmap { at, .. }
            | Call::Protect { at, .. }
            | Call::Advise { at, .. }
            | Call::Remap { at, .. }
            | Call::Lock { at, .. }
            | Call::Unlock { at, .. }
            | Call::Sync { at, .. }
            | Call::InCore { at, .. } => Some(*at),
            Call::Break { .. } | Call::Other { .. } => None,
        }
    }

    /// The bytes that it works on, as the caller gave them; those of a [`Call::Remap`] are the new
    /// length.
    pub fn length(&self) -> Option<u64> {
        match self {
            Call::Map { length, .. }
            | Call::Unmap { length, .. }
            | Call::Protect { length, .. }
            | Call::Advise { length, .. }
            | Call::Break { length, .. }
            | Call::Lock { length, .. }
            | Call::Unlock { length, .. }
            | Call::Sync { length, .. }
            | Call::InCore { length, .. } => Some(*length),
            Call::Remap { new_length, .. } => Some(*new_length),
            Call::Other { .. } => None,
        }
    }

    /// Its name in manual pages, the common one of several.
    pub fn name(&self) -> &'static str {
        match self {
            Call::Map { .. } => "mmap",
            Call::Unmap { .. } => "munmap",
            Call::Protect { .. } => "mprotect",
            Call::Advise { .. } => "madvise",
            Call::Remap { .. } => "mremap",
            Call::Break { .. } => "brk",
            Call::Lock { .. } => "mlock",
            Call::Unlock { .. } => "munlock",
            Call::Sync { .. } => "msync",
            Call::InCore { .. } => "mincore",
            Call::Other { .. } => "other",
        }
    }
}
