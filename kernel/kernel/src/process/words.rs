//! Words of memory that threads wait at (`futex`).

use super::Thread;
use crate::system::system;
use alloc::sync::Arc;
use ipc::futex::Name;
use machine::PAGE_SIZE;
use vm::Flags;

impl Thread {
    /// The name of the process's own word at `at`: its space and address.
    pub fn own_word(&self, at: usize) -> Name {
        Name {
            of: Arc::as_ptr(&self.space).addr() as u64,
            at: at as u64,
        }
    }

    /// The name of the word at `at`: its object and offset, if it is shared.
    pub fn word(&self, at: usize) -> Name {
        let region = self.space.region_at(at);
        let shared = region.filter(|region| region.flags.has(Flags::SHARED));
        let object = shared.and_then(|it| it.object);
        object.map_or(self.own_word(at), |object| Name {
            of: object.id.number(),
            at: object.offset + (at % PAGE_SIZE) as u64,
        })
    }

    /// Wakes a thread of any process that waits at a word.
    pub(super) fn wake_at(&self, at: usize) {
        system().futexes.wake(&system().kernel, self.word(at), 1);
    }
}
