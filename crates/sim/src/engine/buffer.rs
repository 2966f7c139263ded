//! Store buffers: a CPU does not wait for the line of a store.
//!
//! The order is x86's (TSO). Stores become visible in program order; later loads do not wait for
//! them, but locked instructions and fences do. A store reaches memory when its line has arrived,
//! so other CPUs see the old value until then. A CPU that touches a line for which its buffer holds
//! a store waits until the buffer is empty.

use super::Time;
use super::access::Room;
use crate::coherence::{LineId, Terms};
use std::collections::VecDeque;

/// A store in the buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    pub(super) line: LineId,
    pub(super) address: usize,
    /// The size: 1, 2, 4 or 8.
    pub(super) bytes: u8,
    pub(super) value: u64,
    /// When the CPU made the store; a CPU may be ahead of its buffer.
    pub(super) made: Time,
    /// What the transfer of its line costs.
    pub(super) terms: Terms,
}

/// One CPU's stores that are not yet visible, the oldest first.
pub(super) struct StoreBuffer {
    stores: VecDeque<Store>,
    capacity: usize,
    /// True if the line of the oldest store has been requested.
    pub(super) requested: bool,
}

impl StoreBuffer {
    pub(super) fn new(capacity: usize) -> Self {
        StoreBuffer {
            stores: VecDeque::with_capacity(capacity),
            capacity,
            requested: false,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    #[inline]
    pub(super) fn has_room(&self, room: Room) -> bool {
        match room {
            Room::All => self.stores.is_empty(),
            Room::One => self.stores.len() < self.capacity,
        }
    }

    /// Returns true if the buffer holds a store to `line`.
    pub(super) fn has(&self, line: LineId) -> bool {
        self.stores.iter().any(|store| store.line == line)
    }

    pub(super) fn push(&mut self, store: Store) {
        debug_assert!(self.has_room(Room::One));
        self.stores.push_back(store);
    }

    pub(super) fn oldest(&self) -> Option<Store> {
        self.stores.front().copied()
    }

    /// Makes the oldest store visible.
    ///
    /// # Safety
    /// Its address is still that of the atomic it was made to.
    pub(super) unsafe fn perform(&mut self) {
        use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Release};
        let Some(Store {
            address,
            bytes,
            value,
            ..
        }) = self.stores.pop_front()
        else {
            return;
        };
        self.requested = false;
        // SAFETY: the caller answers for the address; atomics of these sizes may be accessed so.
        unsafe {
            match bytes {
                1 => (*(address as *const AtomicU8)).store(value as u8, Release),
                2 => (*(address as *const AtomicU16)).store(value as u16, Release),
                4 => (*(address as *const AtomicU32)).store(value as u32, Release),
                _ => (*(address as *const AtomicU64)).store(value, Release),
            }
        }
    }
}
