//! Watches of files and directories (`inotify`).
//!
//! A file does not know its names. So an event of a file is looked for in the directories that are
//! watched, and nothing is looked for while nothing is watched.

use super::{Inode, Special, Target, unready};
use crate::errno::Errno;
use crate::heap;
use crate::single::Single;
use crate::system::{Lock, system};
use alloc::collections::VecDeque;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use ipc::pipe::ATOMIC;
use ipc::{End, Pipe, poll_while};
use linux_raw_sys::general::*;
use metal::Metal;

/// All watches.
pub static WATCHES: Single<Watches> = Single::new();

/// All watches.
#[derive(Default)]
pub struct Watches {
    all: Lock<Vec<Watch>>,
    /// The number of watches. It guards no other memory: relaxed.
    count: AtomicU32,
    /// The number of renames, which joins the two events of each.
    renames: AtomicU32,
}

/// A watch of an inode.
struct Watch {
    inode: Arc<Inode>,
    queue: Weak<Events>,
    number: i32,
    wanted: u32,
}

/// The events that a file of watches has not read.
pub struct Notices {
    events: Arc<Events>,
}

struct Events {
    queue: Lock<Queue>,
    /// A byte for each event.
    signal: Arc<Pipe<Metal>>,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    bytes: usize,
    /// The number of the last watch.
    last: i32,
}

#[derive(Clone, PartialEq, Eq)]
struct Event {
    number: i32,
    what: u32,
    cookie: u32,
    /// The name in the watched directory; empty for the watched inode itself.
    name: Vec<u8>,
}

/// The most events that nobody has read.
const MOST: usize = 4000;
/// Bytes of an event before its name.
const HEAD: usize = 16;

impl Event {
    /// The bytes of its name, with zeroes behind.
    fn room(&self) -> usize {
        match self.name.len() {
            0 => 0,
            bytes => (bytes + 1).next_multiple_of(HEAD),
        }
    }

    fn bytes(&self) -> usize {
        HEAD + self.room()
    }
}

impl Notices {
    /// A file without watches.
    pub fn new() -> Result<Self, Errno> {
        let signal = Pipe::of_size(ATOMIC).map_err(|_| Errno::NOMEM)?;
        Ok(Notices {
            events: Arc::new(Events {
                queue: Lock::default(),
                signal: Arc::new(signal),
            }),
        })
    }

    /// Watches an inode, or changes the watch of it; returns its number.
    pub fn watch(&self, inode: &Arc<Inode>, mask: u32) -> Result<i32, Errno> {
        let mut all = WATCHES.all.lock();
        let found = all
            .iter_mut()
            .find(|it| it.is_of(self) && Arc::ptr_eq(&it.inode, inode));
        let wanted = mask & (IN_ALL_EVENTS | IN_ONESHOT | IN_EXCL_UNLINK);
        if let Some(one) = found {
            if mask & IN_MASK_CREATE != 0 {
                return Err(Errno::EXIST);
            }
            let kept = if mask & IN_MASK_ADD != 0 {
                one.wanted
            } else {
                0
            };
            one.wanted = wanted | kept;
            return Ok(one.number);
        }
        let number = {
            let mut queue = self.events.queue.lock();
            queue.last += 1;
            queue.last
        };
        let queue = Arc::downgrade(&self.events);
        let inode = inode.clone();
        heap::push(
            &mut all,
            Watch {
                inode,
                queue,
                number,
                wanted,
            },
        )?;
        WATCHES.count.fetch_add(1, Ordering::Relaxed);
        Ok(number)
    }

    /// Ends a watch.
    pub fn forget(&self, number: i32) -> Result<(), Errno> {
        let mut all = WATCHES.all.lock();
        let place = all
            .iter()
            .position(|it| it.is_of(self) && it.number == number);
        let removed = all.remove(place.ok_or(Errno::INVAL)?);
        drop(all);
        WATCHES.count.fetch_sub(1, Ordering::Relaxed);
        removed.tell(IN_IGNORED, 0, &[]);
        Ok(())
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        let mut ended = Vec::new();
        let mut all = WATCHES.all.lock();
        while let Some(place) = all.iter().position(|it| it.is_of(self)) {
            ended.push(all.swap_remove(place));
        }
        drop(all);
        WATCHES
            .count
            .fetch_sub(ended.len() as u32, Ordering::Relaxed);
    }
}

impl Special for Notices {
    fn name(&self) -> &'static [u8] {
        b"anon_inode:inotify"
    }

    fn read(
        &self,
        to: &mut dyn Target,
        blocks: bool,
        waits: &dyn Fn() -> bool,
    ) -> Result<usize, Errno> {
        let Events { queue, signal } = &*self.events;
        let mut done = 0;
        loop {
            let mut now = queue.lock();
            match now.events.front() {
                Some(first) if first.bytes() > to.most() - done => {
                    return if done > 0 {
                        Ok(done)
                    } else {
                        Err(Errno::INVAL)
                    };
                }
                Some(_) => {}
                None if done > 0 => return Ok(done),
                None if !waits() => return Err(unready(blocks)),
                None => {
                    drop(now);
                    poll_while(&system().kernel, &[(&**signal, End::Reading)], waits);
                    continue;
                }
            }
            let Some(event) = now.events.pop_front() else {
                continue;
            };
            now.bytes -= event.bytes();
            drop(now);
            // The byte is in the pipe, or about to be.
            signal.read(&system().kernel, &mut [0]);
            let mut bytes = heap::buffer(event.bytes())?;
            let words = [
                event.number as u32,
                event.what,
                event.cookie,
                event.room() as u32,
            ];
            bytes[..HEAD].copy_from_slice(words.map(u32::to_le_bytes).as_flattened());
            bytes[HEAD..HEAD + event.name.len()].copy_from_slice(&event.name);
            if to.put(done, &bytes) < bytes.len() {
                return Err(Errno::FAULT);
            }
            done += bytes.len();
        }
    }

    fn is_ready(&self) -> bool {
        !self.events.queue.lock().events.is_empty()
    }

    fn available(&self) -> Option<u64> {
        Some(self.events.queue.lock().bytes as u64)
    }

    fn pipe(&self) -> &Arc<Pipe<Metal>> {
        &self.events.signal
    }
}

impl Watch {
    fn is_of(&self, file: &Notices) -> bool {
        self.queue.ptr_eq(&Arc::downgrade(&file.events))
    }

    /// Adds an event, unless it is the same as the last one.
    fn tell(&self, what: u32, cookie: u32, name: &[u8]) {
        let Some(events) = self.queue.upgrade() else {
            return;
        };
        let mut queue = events.queue.lock();
        let event = match queue.events.len() {
            // The last one tells that others are lost.
            MOST.. => Event {
                number: -1,
                what: IN_Q_OVERFLOW,
                cookie: 0,
                name: Vec::new(),
            },
            _ => Event {
                number: self.number,
                what,
                cookie,
                name: name.to_vec(),
            },
        };
        if queue.events.back() == Some(&event) || queue.events.try_reserve(1).is_err() {
            return;
        }
        queue.bytes += event.bytes();
        queue.events.push_back(event);
        drop(queue);
        // There is room for more than may wait.
        let _ = events.signal.write(&system().kernel, &[0]);
    }
}

impl Watches {
    /// Returns true if something is watched.
    #[inline]
    fn are_some(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Tells the watches of `inode` what has happened to it, or to a name in it, and ends those
    /// that have seen their only event.
    fn tell(&self, inode: &Inode, what: u32, cookie: u32, name: &[u8]) {
        let mut ended = Vec::new();
        let mut all = self.all.lock();
        let mut place = 0;
        while let Some(one) = all.get(place) {
            let is_meant = core::ptr::eq(&*one.inode, inode) && one.wanted & what != 0;
            if is_meant {
                one.tell(what, cookie, name);
            }
            let is_last = what & IN_DELETE_SELF != 0 || one.wanted & IN_ONESHOT != 0 && is_meant;
            if is_last && core::ptr::eq(&*one.inode, inode) {
                one.tell(IN_IGNORED, 0, &[]);
                ended.push(all.swap_remove(place));
            } else {
                place += 1;
            }
        }
        drop(all);
        self.count.fetch_sub(ended.len() as u32, Ordering::Relaxed);
    }

    /// Tells the watches of an inode that it has lost a name.
    fn tell_removed(&self, inode: &Inode) {
        let is_directory = inode.directory().is_ok();
        if !is_directory {
            self.tell(inode, IN_ATTRIB, 0, &[]);
        }
        if is_directory || inode.attributes.links.load(Ordering::Relaxed) == 0 {
            self.tell(inode, IN_DELETE_SELF, 0, &[]);
        }
    }

    /// The watched directories, each once.
    fn directories(&self) -> Vec<Arc<Inode>> {
        let mut found: Vec<Arc<Inode>> = Vec::new();
        for one in &*self.all.lock() {
            let is_new = !found.iter().any(|it| Arc::ptr_eq(it, &one.inode));
            if one.inode.directory().is_ok() && is_new {
                found.push(one.inode.clone());
            }
        }
        found
    }
}

impl Inode {
    /// Something has happened to the inode: `IN_…`. Nothing of the file system is locked.
    pub fn happened(self: &Arc<Self>, what: u32) {
        let watches = &*WATCHES;
        if !watches.are_some() {
            return;
        }
        let of_directory = if self.directory().is_ok() {
            IN_ISDIR
        } else {
            0
        };
        for parent in watches.directories() {
            let name = parent.directory().ok().and_then(|it| it.name_of(self));
            if let Some(name) = name {
                watches.tell(&parent, what | of_directory, 0, &name);
            }
        }
        watches.tell(self, what | of_directory, 0, &[]);
    }

    /// A name in the directory has been given to `inode`, or taken from it.
    pub fn happened_to_name(&self, what: u32, name: &[u8], inode: &Inode) {
        let watches = &*WATCHES;
        if !watches.are_some() {
            return;
        }
        let of_directory = if inode.directory().is_ok() {
            IN_ISDIR
        } else {
            0
        };
        watches.tell(self, what | of_directory, 0, name);
        if what == IN_DELETE {
            watches.tell_removed(inode);
        }
    }
}

/// `inode` has been renamed; each name is in its directory. `replaced` is what had the new name.
pub fn renamed(inode: &Inode, [from, to]: [(&Inode, &[u8]); 2], replaced: Option<&Inode>) {
    let watches = &*WATCHES;
    if !watches.are_some() {
        return;
    }
    let of_directory = if inode.directory().is_ok() {
        IN_ISDIR
    } else {
        0
    };
    let cookie = watches.renames.fetch_add(1, Ordering::Relaxed) + 1;
    watches.tell(from.0, IN_MOVED_FROM | of_directory, cookie, from.1);
    watches.tell(to.0, IN_MOVED_TO | of_directory, cookie, to.1);
    watches.tell(inode, IN_MOVE_SELF, 0, &[]);
    if let Some(replaced) = replaced {
        watches.tell_removed(replaced);
    }
}
