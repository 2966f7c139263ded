//! Reading and writing an object's bytes, as `read(2)` and `write(2)` do with a file's:
//! through the same pages that are mapped.

use super::page::{Advice, PageRef};
use super::{MAX_SIZE, Object, bytes};
use crate::error::Error;
use crate::policy::Policies;
use core::ops::Range;
use machine::{Atomic, PAGE_SIZE, Platform};

impl<M: Platform, P: Policies<M>> Object<M, P> {
    /// Copies the object's bytes from `offset` on to `to`; returns how many there were.
    ///
    /// Fewer than asked for at the object's end, and where an error came after some.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<usize, Error> {
        transfer(offset, to.len(), |at, part| {
            let inside = self.size().saturating_sub(at).min(part.len() as u64) as usize;
            if inside == 0 {
                return Ok(0);
            }
            match self.page_with(at) {
                Ok(page) => {
                    let part = &mut to[part.start..part.start + inside];
                    bytes::copy_out(self.vm.machine(), page.frame(), in_page(at), part);
                    Ok(inside)
                }
                // It has shrunk meanwhile: its end is here.
                Err(Error::Bus { .. }) => Ok(0),
                Err(error) => Err(error),
            }
        })
    }

    /// Copies `from` to the object's bytes from `offset` on, making the object larger if
    /// they go beyond its end; returns how many were written.
    ///
    /// Fewer than asked for where an error came after some.
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
            let appended = self.vm.with_frames(|| self.append(at, part));
            appended.map(|()| part.len())
        })
    }

    /// The page that has the byte `at`.
    fn page_with(&self, at: u64) -> Result<PageRef<'_, M, P>, Error> {
        let index = at / PAGE_SIZE as u64;
        self.vm.with_frames(|| self.page(index, Advice::Normal))
    }

    /// Writes `part`, of one page, of which some lies behind the object's end.
    #[cold]
    fn append(&self, at: u64, part: &[u8]) -> Result<(), Error> {
        let mut resize = self.resize.lock();
        let end = at + part.len() as u64;
        let grows = end > self.size();
        let growth = self.charge(end)?;
        let _tail = if grows {
            self.prepare_to_grow(&mut resize)?
        } else {
            None
        };
        // Nobody else changes the size, and nobody finds the page until it is changed.
        let pages = end.div_ceil(PAGE_SIZE as u64).max(self.pages());
        let page = self.page_within(at / PAGE_SIZE as u64, Advice::Normal, || pages)?;
        self.fill_in(&page, at, part);
        if grows {
            // Publish: pairs with `Object::size`; what it reaches to is there.
            self.size.publish(end);
        }
        growth.keep();
        Ok(())
    }

    /// Copies to a page. It is dirty afterwards, not before: who takes it for clean
    /// in between takes less than there is.
    fn fill_in(&self, page: &PageRef<'_, M, P>, at: u64, part: &[u8]) {
        bytes::copy_in(self.vm.machine(), page.frame(), in_page(at), part);
        self.mark_dirty(page.frame());
    }
}

/// Where in its page the byte `at` is.
fn in_page(at: u64) -> usize {
    (at % PAGE_SIZE as u64) as usize
}

/// Calls `step` with each part of `count` bytes from `offset` on that lies in one page: its
/// offset, and where it is in the whole. Ends with the first of which not all was done.
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
