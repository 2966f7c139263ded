//! The roster: all existing pmaps, by tag.
//!
//! A task that reclaims tables visits the pmaps in rotation, so it must find them all; and a space
//! that is made or dropped must write no line of another CPU's. So there is no list: each tag has a
//! place, and the tags that a CPU takes ([`super::asids`]) have theirs together. Places are made
//! for 512 tags at once, when the first of them is taken, and stay.
//!
//! # Protocol
//! A pmap is entered when it is whole, and removed when it is dropped, before its tag is given
//! back. Its place has a weak reference, under a lock of its own.
//! - A task that finds a pmap upgrades the reference under the lock, and then has a strong one: the
//!   pmap stays until the task drops that, perhaps as the last. If the last has gone already the
//!   task finds nothing.
//! - A task that removes a pmap takes the reference out under the lock: no task upgrades it any
//!   more, and the place is empty for the tag's next owner.

#[cfg(test)]
mod model;

use crate::error::Error;
use crate::heap::filled;
use crate::lock::RosterLock;
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::marker::PhantomData;
use core::ops::Range;
use core::{array, ptr, slice};
use machine::{Asid, Atomic, Machine, Ordering};
use sync::Padded;

/// The number of tags.
pub(crate) const TAGS: usize = 1 << 16;
/// The number of tags whose places are made together.
const TOGETHER: usize = 512;
/// Pointers that fill the lines of a [`Padded`].
const IN_LINES: usize = 16;

/// All `T`s that exist, by tag.
pub(crate) struct Roster<M: Machine, T: ?Sized + Send + Sync> {
    /// Pointers, each null or to the first of [`TOGETHER`] [`Known`] pmaps. Each is written once,
    /// by the task that takes the first of its tags.
    places: Box<[Padded<[M::AtomicPtr; IN_LINES]>]>,
    of: PhantomData<fn(&T)>,
}

/// The owner of a tag, if it is taken.
type Known<M, T> = RosterLock<M, Option<Weak<T>>>;

impl<M: Machine, T: ?Sized + Send + Sync> Roster<M, T> {
    /// An empty roster.
    pub(crate) fn new() -> Result<Self, Error> {
        let none = || Padded(array::from_fn(|_| M::AtomicPtr::new(ptr::null_mut())));
        Ok(Roster {
            places: filled(TAGS / TOGETHER / IN_LINES, none)?,
            of: PhantomData,
        })
    }

    pub(crate) fn label(&self) {
        M::label_value(&*self.places, "Vm.roster");
    }

    /// Makes the place of a tag, whose owner is the caller.
    pub(crate) fn prepare(&self, tag: Asid) -> Result<(), Error> {
        let index = usize::from(tag.0);
        match self.places_of(index) {
            Some(_) => Ok(()),
            None => self.make(index),
        }
    }

    /// Enters `one` at its tag, which is prepared.
    pub(crate) fn enter(&self, tag: Asid, one: Weak<T>) {
        let mut place = self.place(tag).lock();
        machine::invariant!(M: place.is_none(), "a tag has two owners");
        *place = Some(one);
    }

    /// Removes the entry of the tag, if there is one.
    pub(crate) fn strike(&self, tag: Asid) {
        let struck = self.place(tag).lock().take();
        drop(struck);
    }

    /// The first entry with a tag in `tags`, and the tag.
    pub(crate) fn first(&self, tags: Range<usize>) -> Option<(usize, Arc<T>)> {
        let mut at = tags.start;
        while at < tags.end {
            let next = (at / TOGETHER + 1) * TOGETHER;
            if let Some(places) = self.places_of(at) {
                let part = at..next.min(tags.end);
                let found = part.clone().find_map(|tag| {
                    let place = places[tag % TOGETHER].lock();
                    Some((tag, place.as_ref()?.upgrade()?))
                });
                if found.is_some() {
                    return found;
                }
            }
            at = next;
        }
        None
    }

    /// The place of a tag that is prepared.
    fn place(&self, tag: Asid) -> &Known<M, T> {
        let index = usize::from(tag.0);
        let places = self.places_of(index).expect("a tag that is prepared");
        &places[index % TOGETHER]
    }

    fn pointer(&self, tag: usize) -> &M::AtomicPtr {
        let index = tag / TOGETHER;
        &self.places[index / IN_LINES].0[index % IN_LINES]
    }

    fn places_of(&self, tag: usize) -> Option<&[Known<M, T>]> {
        // Acquire: pairs with the release in `make`.
        let first = self
            .pointer(tag)
            .load(Ordering::Acquire)
            .cast::<Known<M, T>>();
        // SAFETY: published places are `TOGETHER` many, and stay until `self` is dropped.
        (!first.is_null()).then(|| unsafe { slice::from_raw_parts(first, TOGETHER) })
    }

    #[cold]
    fn make(&self, tag: usize) -> Result<(), Error> {
        let made = filled(TOGETHER, || Known::<M, T>::new(None))?;
        let (first, bytes) = (made.as_ptr(), size_of_val(&*made));
        let made = Box::into_raw(made).cast::<()>();
        // Release: a task that finds the places finds them whole. The owner of another tag may have
        // been faster.
        let won = self.pointer(tag).compare_exchange(
            ptr::null_mut(),
            made,
            Ordering::Release,
            Ordering::Relaxed,
        );
        match won {
            Ok(_) => M::label(first.cast(), bytes, "Vm.roster"),
            // SAFETY: made above, and no task has seen it.
            Err(_) => unsafe { Self::free(made) },
        }
        Ok(())
    }

    /// # Safety
    /// `first` is that of places that were made, and is not used any more.
    unsafe fn free(first: *mut ()) {
        let places = ptr::slice_from_raw_parts_mut(first.cast::<Known<M, T>>(), TOGETHER);
        // SAFETY: a boxed slice of `TOGETHER` places, by `make`.
        drop(unsafe { Box::from_raw(places) });
    }
}

impl<M: Machine, T: ?Sized + Send + Sync> Drop for Roster<M, T> {
    fn drop(&mut self) {
        for tag in (0..TAGS).step_by(TOGETHER) {
            let first = self.pointer(tag).load(Ordering::Relaxed);
            if !first.is_null() {
                // SAFETY: no other user is left.
                unsafe { Self::free(first) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hosted::Hosted;
    use std::vec::Vec;

    /// The entries, in the order of a rotation that begins at `from`.
    fn seen(roster: &Roster<Hosted, usize>, from: usize) -> Vec<usize> {
        let mut seen = Vec::new();
        for mut part in [from..TAGS, 0..from] {
            while let Some((tag, one)) = roster.first(part.clone()) {
                assert_eq!(tag, *one);
                seen.push(tag);
                part.start = tag + 1;
            }
        }
        seen
    }

    #[test]
    fn a_rotation_finds_everybody_once() {
        Hosted::new(1).on_cpu(0, || {
            let roster = Roster::<Hosted, usize>::new().expect("room");
            let tags = [3, 4, 511, 512, 40_000, TAGS - 1];
            let all = tags.map(Arc::new);
            for one in &all {
                let tag = Asid(**one as u16);
                roster.prepare(tag).expect("room");
                roster.enter(tag, Arc::downgrade(one));
            }
            assert_eq!(seen(&roster, 0), tags);
            assert_eq!(seen(&roster, 512), [512, 40_000, TAGS - 1, 3, 4, 511]);
            roster.strike(Asid(511));
            assert_eq!(seen(&roster, 5), [512, 40_000, TAGS - 1, 3, 4]);
            drop(all);
            assert_eq!(seen(&roster, 0), []);
        });
    }
}
