//! A file's calls on its object: `read`, `write`, `ftruncate`.
//!
//! Bytes are read and written through the same pages that are mapped. If no frame is left, these
//! calls reclaim and try again.
//!
//! # Private copies
//! A truncation changes the object, then lists its mappings, then locks the slots of each mapping,
//! vacant ones too, and takes away the private copies behind the end.
//! - A copy of the object's page is made under its slot's lock: before the truncation comes there,
//!   or afterwards, when the object has no page to copy any more.
//! - A fork or a move, which passes a copy on, lists the new mapping first, and then reads the
//!   object's size ([`Attachment::reached`]): so the truncation finds the mapping, or the copy is
//!   not passed on.
//!
//! [`Attachment::reached`]: crate::object::Attachment::reached

use crate::flags::Flags;

use crate::error::Error;
use crate::object::{Attached, MAX_SIZE, Object, PageRef, Pattern, in_page};
use crate::pmap::Pmap;
use crate::system::System;
use crate::tree::Mapped;
use crate::vm::Hold;
use core::ops::Range;
use core::ptr;
use machine::{Memory, PAGE_SIZE, VaRange};

impl<S: System> Object<S> {
    /// Copies the object's bytes from `offset` on to `to`; returns their number.
    ///
    /// Fewer than requested at the object's end, and where an error came after some.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<usize, Error> {
        transfer(offset, to.len(), |at, part| {
            let inside = self.size().saturating_sub(at).min(part.len() as u64) as usize;
            if inside == 0 {
                return Ok(0);
            }
            match self.page_with(at) {
                Ok(page) => {
                    let part = &mut to[part.start..part.start + inside];
                    let machine = self.vm().machine();
                    // SAFETY: `page` is a hold of it.
                    unsafe { machine.read_bytes(page.frame(), in_page(at), part) };
                    Ok(inside)
                }
                // It has shrunk meanwhile: its end is here.
                Err(Error::Bus { .. }) => Ok(0),
                Err(error) => Err(error),
            }
        })
    }

    /// Copies `from` to the object's bytes from `offset` on, making the object larger if
    /// they go beyond its end; returns the number of bytes written.
    ///
    /// Fewer than requested where an error came after some.
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<usize, Error> {
        let end = offset.checked_add(from.len() as u64);
        if end.is_none_or(|end| end > MAX_SIZE) {
            let reason = "an object is smaller than 2^63 bytes";
            return Err(Error::Invalid { reason });
        }
        transfer(offset, from.len(), |at, part| {
            let part = &from[part];
            let end = at + part.len() as u64;
            if end <= self.size() {
                match self.page_with(at) {
                    // It has shrunk meanwhile, and must grow again.
                    Err(Error::Bus { .. }) => {}
                    page => {
                        self.fill_in(&page?, at, part);
                        return Ok(part.len());
                    }
                }
            }
            let appended = self.vm().with_frames(|| self.append(at, part));
            appended.map(|()| part.len())
        })
    }

    /// The page that has the byte `at`.
    fn page_with(&self, at: u64) -> Result<PageRef<'_, S>, Error> {
        let index = at / PAGE_SIZE as u64;
        self.vm().with_frames(|| self.page(index, Pattern::Normal))
    }

    /// Makes the object `size` bytes large, as `ftruncate` does a file. When it returns, no CPU
    /// reaches a page behind its end any more, private copies of such pages included: an
    /// access is [`Error::Bus`].
    ///
    /// If there is no memory to take copies out of a table that a fork has shared
    /// ([`Error::OutOfMemory`]), some may be left; then it is to be called again. O(pages cut off +
    /// mappings of them).
    pub fn set_size(&self, size: u64) -> Result<(), Error> {
        let shrinks = size < self.size();
        self.truncate(size, |_| {})?;
        if !shrinks {
            return Ok(());
        }
        let cut = size.div_ceil(PAGE_SIZE as u64);
        // SAFETY: spaces attach objects with their pmaps as owners. An attachment that is listed is
        // some slot's of the pmap, or a task's of its space, and goes off the list before the pmap.
        let mappers = unsafe { self.mappers::<Pmap<S>>(cut..u64::MAX) };
        for (pmap, range, first) in mappers {
            let kept = cut.saturating_sub(first).min(range.pages() as u64) as usize;
            let gone = VaRange {
                start: range.start + kept * PAGE_SIZE,
                end: range.end,
            };
            let copies = |at: Mapped<'_, S>| {
                // Another mapping of the object may be there by now.
                let ours = |to: &Attached<S>| {
                    ptr::eq(to.object(), self) && to.index(at.range.start) >= cut
                };
                !at.flags.has(Flags::SHARED) && at.attachment.is_some_and(ours)
            };
            if gone.start < gone.end {
                pmap.remove_where(gone, copies)?;
            }
        }
        Ok(())
    }

    /// Makes the object `size` bytes large. The bytes it grows by are zero; the bytes cut off are
    /// gone when this returns: in no page table, and zero if the object grows again.
    ///
    /// `see` is called with each page cut off that is in memory, before its mappings are removed,
    /// and may lock slots. Private copies of such pages are the caller's
    /// ([`Object::for_each_attachment`]), after this.
    ///
    /// Shrinking a file does not call the store, which is cut off by the next growth or
    /// write-back, which may then fail. An error has changed nothing. O(leaves + pages cut off).
    /// Sleeps while pages cut off are being read or written.
    pub fn truncate(&self, size: u64, mut see: impl FnMut(&Hold<S>)) -> Result<(), Error> {
        let mut remove = |hold: &Hold<S>| {
            see(hold);
            self.vm().remove_all(hold);
        };
        self.vm()
            .with_frames(|| self.try_truncate(size, &mut remove))
    }
}

/// Divides the `count` bytes from `offset` on into parts within one page each, and calls `step`
/// with each part's offset and its range in the whole. Ends with the first part that was not done
/// wholly.
fn transfer(
    offset: u64,
    count: usize,
    mut step: impl FnMut(u64, Range<usize>) -> Result<usize, Error>,
) -> Result<usize, Error> {
    let mut done = 0;
    while done < count {
        let Some(at) = offset.checked_add(done as u64) else {
            break;
        };
        let part = (PAGE_SIZE - in_page(at)).min(count - done);
        match step(at, done..done + part) {
            Ok(stepped) => {
                debug_assert!(stepped <= part, "more bytes than were to be done");
                done += stepped;
                if stepped < part {
                    break;
                }
            }
            Err(error) if done == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(done)
}
