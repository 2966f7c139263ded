//! Counters that are files (`eventfd`): writing adds, reading takes.

use crate::errno::Errno;
use crate::system::system;
use alloc::sync::Arc;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use ipc::{End, Kernel, Pipe, poll_while};
use metal::Metal;

/// Bytes of a number that is read or written.
pub const BYTES: usize = size_of::<u64>();
/// The highest count.
const MOST: u64 = u64::MAX - 1;

/// A counter.
pub struct Event {
    /// The count. A thread that raises it from 0 puts a byte into `signal`, and one that lowers it
    /// to 0 takes one out. Acquire and release: a reader sees all that the writer did before.
    count: AtomicU64,
    /// Contains a byte while the count is not 0, for threads that wait for that.
    signal: Arc<Pipe<Metal>>,
    /// True if each read takes 1, and not all.
    takes_one: bool,
}

impl Event {
    pub fn new(count: u64, takes_one: bool) -> Result<Self, Errno> {
        let event = Event {
            count: AtomicU64::new(0),
            signal: Arc::new(Pipe::try_new().map_err(|_| Errno::NFILE)?),
            takes_one,
        };
        event.add(count);
        Ok(event)
    }

    fn sum(count: u64, value: u64) -> Option<u64> {
        count.checked_add(value).filter(|&sum| sum <= MOST)
    }

    /// Adds to the count. Returns false if there is no room.
    pub(super) fn add(&self, value: u64) -> bool {
        let sum = |count| Self::sum(count, value);
        let added = self
            .count
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, sum);
        match added {
            // There is room, and both ends are open.
            Ok(0) if value > 0 => drop(self.signal.write(&system().kernel, &[0])),
            Ok(_) => self.signal.touch(&system().kernel, End::Writing),
            Err(_) => {}
        }
        added.is_ok()
    }

    /// Takes from the count, if it is not 0.
    pub(super) fn take(&self) -> Option<u64> {
        let part = |count: u64| if self.takes_one { 1 } else { count };
        let rest = |count: u64| (count > 0).then(|| count - part(count));
        let update = self
            .count
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, rest);
        let count = update.ok()?;
        if count == part(count) {
            // The byte is in the pipe, or about to be.
            self.signal.read(&system().kernel, &mut [0]);
        }
        system().kernel.wake(self.room(), usize::MAX);
        Some(part(count))
    }

    /// The key of sleepers that wait for room.
    fn room(&self) -> *const () {
        ptr::from_ref(&self.count).cast()
    }

    /// Reads the count, and waits for one while `waits` returns true; `None` once it does not.
    pub fn read(&self, to: &mut [u8], waits: impl Fn() -> bool) -> Result<Option<usize>, Errno> {
        let to = to.get_mut(..BYTES).ok_or(Errno::INVAL)?;
        loop {
            if let Some(taken) = self.take() {
                to.copy_from_slice(&taken.to_le_bytes());
                return Ok(Some(BYTES));
            }
            if !waits() {
                return Ok(None);
            }
            poll_while(&system().kernel, &[(&*self.signal, End::Reading)], &waits);
        }
    }

    /// Adds the written number, and waits for room while `waits` returns true; `None` once it does
    /// not.
    pub fn write(&self, from: &[u8], waits: impl Fn() -> bool) -> Result<Option<usize>, Errno> {
        let value = from.try_into().map_err(|_| Errno::INVAL)?;
        let value = u64::from_le_bytes(value);
        if value > MOST {
            return Err(Errno::INVAL);
        }
        while !self.add(value) {
            if !waits() {
                return Ok(None);
            }
            // Relaxed: the kernel's lock for sleepers orders it.
            let is_full =
                || Self::sum(self.count.load(Ordering::Relaxed), value).is_none() && waits();
            system().kernel.sleep(self.room(), is_full);
        }
        Ok(Some(BYTES))
    }

    /// True, for reading and for writing 1, if it would not wait.
    pub fn is_ready(&self) -> [bool; 2] {
        let count = self.count.load(Ordering::Acquire);
        [count > 0, count < MOST]
    }

    /// The pipe at which pollers wait for a count.
    pub fn signal(&self) -> &Arc<Pipe<Metal>> {
        &self.signal
    }
}
