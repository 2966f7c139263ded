//! Queues of messages with numbers and keys (System V).

use crate::abi::Errno;
use crate::event_count::EventCount;
use crate::heap;
use crate::numbered::{Keyed, Rights, seconds};
use crate::process::Thread;
use crate::system::Lock;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The most queues.
pub const MOST: usize = 32_000;
/// The most bytes of a message.
pub const LONGEST: usize = 8192;
/// The most bytes of a new queue's messages.
pub const ROOM: usize = 16_384;

/// A message.
pub struct Message {
    /// Its type, above 0.
    pub kind: i64,
    /// Its bytes.
    pub text: Vec<u8>,
}

/// Which message is received: the first of these.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// Any.
    Any,
    /// Of this type.
    Of(i64),
    /// Of another type.
    Except(i64),
    /// Of the lowest type that there is, up to this one.
    UpTo(i64),
}

/// A queue.
pub struct Queue {
    /// Its key; 0 for none.
    pub key: i32,
    /// What its lock protects.
    pub state: Lock<State>,
    /// Changes for which receivers and senders wait.
    changes: [EventCount; 2],
}

/// Who waits for a change of a queue: receivers for a message, senders for room.
#[derive(Clone, Copy)]
enum Side {
    Receivers,
    Senders,
}

/// The state of a queue.
pub struct State {
    /// Who may use it.
    pub rights: Rights,
    /// The messages, the oldest first.
    pub messages: VecDeque<Message>,
    /// Their bytes.
    pub bytes: usize,
    /// The most bytes, and the most messages.
    pub room: usize,
    /// The processes that sent and received last; 0 for none.
    pub last: [u32; 2],
    /// When that was, and when the queue was changed last, in seconds since 1970; 0 for never.
    pub times: [u64; 3],
    /// How many receivers and senders wait.
    waiting: [u32; 2],
    /// Whether it has been removed.
    is_removed: bool,
}

impl Keyed for Arc<Queue> {
    fn key(&self) -> i32 {
        self.key
    }
}

impl Queue {
    /// A queue without messages.
    pub fn new(key: i32, mode: u32) -> Arc<Self> {
        Arc::new(Queue {
            key,
            state: Lock::new(State {
                rights: Rights::new(mode),
                messages: VecDeque::new(),
                bytes: 0,
                room: ROOM,
                last: [0; 2],
                times: [0, 0, seconds()],
                waiting: [0; 2],
                is_removed: false,
            }),
            changes: Default::default(),
        })
    }

    /// Adds a message, when there is room; if the thread does not wait for that, [`Errno::AGAIN`].
    pub fn send(&self, thread: &Thread, message: Message, waits: bool) -> Result<(), Errno> {
        let mut message = Some(message);
        let pid = thread.process.pid;
        let refusal = (!waits).then_some(Errno::AGAIN);
        self.when_possible(thread, Side::Senders, refusal, |state| {
            let Some(message) = message.take_if(|message| state.has_room(message.text.len()))
            else {
                return Ok(None);
            };
            state.bytes += message.text.len();
            state.messages.push_back(message);
            (state.last[0], state.times[0]) = (pid, seconds());
            Ok(Some(()))
        })
    }

    /// Takes a message, when there is one; if the thread does not wait for that, [`Errno::NOMSG`]. One of more than `most` bytes
    /// stays: [`Errno::TOOBIG`].
    pub fn receive(
        &self,
        thread: &Thread,
        choice: Choice,
        most: usize,
        waits: bool,
    ) -> Result<Message, Errno> {
        let pid = thread.process.pid;
        let refusal = (!waits).then_some(Errno::NOMSG);
        self.when_possible(thread, Side::Receivers, refusal, |state| {
            let Some(place) = state.find(choice) else {
                return Ok(None);
            };
            if state.messages[place].text.len() > most {
                return Err(Errno::TOOBIG);
            }
            let message = state.messages.remove(place);
            state.bytes -= message.as_ref().map_or(0, |message| message.text.len());
            (state.last[1], state.times[1]) = (pid, seconds());
            Ok(message)
        })
    }

    /// A copy of the message with this number from the oldest on; an error if that has more than `most` bytes.
    pub fn copy(&self, place: usize, most: usize, longer: Errno) -> Result<Message, Errno> {
        let state = self.state.lock();
        let message = state.messages.get(place).ok_or(Errno::NOMSG)?;
        if message.text.len() > most {
            return Err(longer);
        }
        let mut text = heap::buffer(message.text.len())?;
        text.copy_from_slice(&message.text);
        let kind = message.kind;
        Ok(Message { kind, text })
    }

    /// Changes the state: all who wait try again.
    pub fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        self.changes.iter().for_each(EventCount::advance);
        drop(state);
        self.changes.iter().for_each(EventCount::wake);
    }

    /// It has been taken away: who waits learns of it.
    pub fn remove(&self) {
        self.change(|state| state.is_removed = true);
    }

    /// Does `work`, which returns nothing while it is not possible: then the thread waits, unless it is refused.
    fn when_possible<R>(
        &self,
        thread: &Thread,
        side: Side,
        refusal: Option<Errno>,
        mut work: impl FnMut(&mut State) -> Result<Option<R>, Errno>,
    ) -> Result<R, Errno> {
        let [own, others] = match side {
            Side::Receivers => [0, 1],
            Side::Senders => [1, 0],
        };
        loop {
            // Before the attempt: a change that comes in time counts.
            let is_disturbed = thread.is_disturbed();
            let mut state = self.state.lock();
            if state.is_removed {
                return Err(Errno::IDRM);
            }
            if let Some(result) = work(&mut state)? {
                self.changes[others].advance();
                let wakes = state.waiting[others] > 0;
                drop(state);
                if wakes {
                    self.changes[others].wake();
                }
                return Ok(result);
            }
            if let Some(errno) = refusal.or(is_disturbed.then_some(Errno::INTR)) {
                return Err(errno);
            }
            state.waiting[own] += 1;
            let seen = self.changes[own].read();
            drop(state);
            self.changes[own].wait(seen);
            self.state.lock().waiting[own] -= 1;
        }
    }
}

impl State {
    /// Whether there is room for a message of so many bytes.
    fn has_room(&self, bytes: usize) -> bool {
        self.bytes + bytes <= self.room && self.messages.len() < self.room
    }

    /// The place of the message to be received.
    fn find(&self, choice: Choice) -> Option<usize> {
        let kinds = self.messages.iter().map(|message| message.kind);
        let mut kinds = kinds.enumerate();
        let found = match choice {
            Choice::Any => kinds.next(),
            Choice::Of(kind) => kinds.find(|&(_, it)| it == kind),
            Choice::Except(kind) => kinds.find(|&(_, it)| it != kind),
            // The first of several that are the lowest.
            Choice::UpTo(kind) => kinds
                .filter(|&(_, it)| it <= kind)
                .min_by_key(|&(_, it)| it),
        };
        found.map(|(place, _)| place)
    }
}
