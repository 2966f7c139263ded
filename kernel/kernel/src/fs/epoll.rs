//! Sets of interests in open files (`epoll`): a program names the files and their events once, and
//! then waits for any of them.
//!
//! A set does not keep its files open: a file that is closed leaves it.

use super::{Awaited, OpenFile};
use crate::errno::Errno;
use crate::heap;
use crate::system::{Lock, system};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use ipc::{End, Pipe, poll_changes};
use linux_raw_sys::general::{POLLERR, POLLHUP};
use metal::Metal;

/// Reports each change once (`EPOLLET`).
const ON_CHANGES: u32 = 1 << 31;
/// Reports once, until the interest is changed (`EPOLLONESHOT`).
const ONCE: u32 = 1 << 30;
/// The bits of an interest that are events.
const EVENTS: u32 = 0xffff;

/// A set of interests.
pub struct Epoll {
    /// In the order in which they are looked at. No file is dropped under this lock.
    interests: Lock<Vec<Interest>>,
    /// It has a byte, so it is ready for those that know of fewer changes. Each change of the
    /// interests is one.
    changed: Arc<Pipe<Metal>>,
}

/// What a program wants to know of an open file.
pub struct Interest {
    /// The descriptor and its file, which identify the interest.
    number: usize,
    file: Weak<OpenFile>,
    /// The wanted events, and how they are reported.
    wanted: u32,
    /// The program's word, which is reported with them.
    data: u64,
    /// False once it has been reported, if that happens once.
    is_armed: bool,
    /// The changes that were known when it was last reported.
    seen: Option<u64>,
}

/// Events of a file, and the word of the interest in it.
pub struct Happened {
    /// `POLL…`.
    pub events: u32,
    /// The program's word.
    pub data: u64,
}

impl Interest {
    /// An interest in the file with this descriptor.
    pub fn new(number: usize, file: &Arc<OpenFile>, wanted: u32, data: u64) -> Self {
        Interest {
            number,
            file: Arc::downgrade(file),
            wanted,
            data,
            is_armed: true,
            seen: None,
        }
    }

    /// Counts what has happened until now as reported.
    pub fn skip_present(&mut self, file: &OpenFile) -> Result<(), Errno> {
        let (_, changes) = self.look(file, &mut Vec::new())?;
        self.seen = Some(changes);
        Ok(())
    }

    fn is_same(&self, other: &Interest) -> bool {
        self.number == other.number && self.file.ptr_eq(&other.file)
    }

    /// The events of its file to be reported now, and the changes that are known then. Adds the
    /// ends at which to wait for others.
    fn look(&self, file: &OpenFile, to: &mut Vec<Awaited>) -> Result<(u32, u64), Errno> {
        if !self.is_armed {
            return Ok((0, 0));
        }
        // Before the events, so that no change between is missed.
        let before = to.len();
        file.await_events(self.wanted, to)?;
        let changes = to[before..].iter().map(|end| end.changes).sum();
        let is_known = self.wanted & ON_CHANGES != 0 && self.seen == Some(changes);
        let events = file.events() & (self.wanted & EVENTS | POLLERR | POLLHUP);
        Ok((if is_known { 0 } else { events }, changes))
    }

    /// Called when events are reported.
    fn report(&mut self, changes: u64) {
        self.seen = Some(changes);
        self.is_armed = self.wanted & ONCE == 0;
    }
}

impl Epoll {
    /// An empty set.
    pub fn new() -> Result<Self, Errno> {
        let changed = Pipe::try_new().map_err(|_| Errno::NFILE)?;
        // There is room, and both ends are open.
        let _ = changed.write(&system().kernel, &[0]);
        Ok(Epoll {
            interests: Lock::new(Vec::new()),
            changed: Arc::new(changed),
        })
    }

    /// Adds an interest; [`Errno::EXIST`] if there is one in the file.
    pub fn add(&self, interest: Interest) -> Result<(), Errno> {
        self.update(|interests| {
            if interests.iter().any(|one| one.is_same(&interest)) {
                return Err(Errno::EXIST);
            }
            heap::push(interests, interest)
        })
    }

    /// Replaces the interest in the same file; [`Errno::NOENT`] if there is none.
    pub fn replace(&self, interest: Interest) -> Result<(), Errno> {
        self.update(|interests| {
            let mut all = interests.iter_mut();
            let one = all.find(|one| one.is_same(&interest));
            *one.ok_or(Errno::NOENT)? = interest;
            Ok(())
        })
    }

    /// Removes the interest in the same file; [`Errno::NOENT`] if there is none.
    pub fn remove(&self, interest: &Interest) -> Result<(), Errno> {
        self.update(|interests| {
            let mut all = interests.iter();
            let place = all.position(|one| one.is_same(interest));
            interests.remove(place.ok_or(Errno::NOENT)?);
            Ok(())
        })
    }

    /// Changes the interests, and lets waiting threads look again.
    fn update(
        &self,
        work: impl FnOnce(&mut Vec<Interest>) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        work(&mut self.interests.lock())?;
        self.changed.touch(&system().kernel, End::Writing);
        Ok(())
    }

    /// Calls `each` with the interests in open files and these files, until it returns false or
    /// fails. Those looked at come last from then on, so that no file is left out for ever.
    fn each(
        &self,
        mut each: impl FnMut(&mut Interest, &OpenFile) -> Result<bool, Errno>,
    ) -> Result<(), Errno> {
        // Dropped after the lock.
        let mut files = Vec::new();
        let mut interests = self.interests.lock();
        interests.retain(|one| one.file.strong_count() > 0);
        files
            .try_reserve(interests.len())
            .map_err(|_| Errno::NOMEM)?;
        let mut goes_on = Ok(true);
        let mut looked = 0;
        while goes_on == Ok(true) && looked < interests.len() {
            let one = &mut interests[looked];
            if let Some(file) = one.file.upgrade() {
                goes_on = each(one, &file);
                files.push(file);
            }
            looked += 1;
        }
        interests.rotate_left(looked);
        drop(interests);
        goes_on.map(drop)
    }

    /// Adds the ends at which to wait until it is ready.
    pub(super) fn await_events(&self, to: &mut Vec<Awaited>) -> Result<(), Errno> {
        heap::push(to, Awaited::new(&self.changed, End::Reading))?;
        self.each(|one, file| one.look(file, to).map(|_| true))
    }

    /// Returns true if a file has events to report.
    pub fn is_ready(&self) -> bool {
        let (mut is_ready, mut ends) = (false, Vec::new());
        let looked = self.each(|one, file| {
            is_ready = one.look(file, &mut ends)?.0 != 0;
            Ok(!is_ready)
        });
        // If there is no memory to look, the caller finds that out when it waits.
        is_ready || looked.is_err()
    }

    /// Returns the events of at most `most` files. Waits for some while `waits` returns true; there
    /// are none once it does not.
    pub fn wait(&self, most: usize, waits: impl Fn() -> bool) -> Result<Vec<Happened>, Errno> {
        loop {
            let (mut all, mut ends) = (Vec::new(), Vec::new());
            heap::push(&mut ends, Awaited::new(&self.changed, End::Reading))?;
            self.each(|one, file| {
                let (events, changes) = one.look(file, &mut ends)?;
                if events != 0 {
                    let data = one.data;
                    heap::push(&mut all, Happened { events, data })?;
                    one.report(changes);
                }
                Ok(all.len() < most)
            })?;
            if !all.is_empty() || !waits() {
                return Ok(all);
            }
            let ends = ends.iter().map(Awaited::parts);
            poll_changes(&system().kernel, ends, &waits);
        }
    }
}
