//! Queues of messages with numbers and keys (System V).
//!
//! A sender gives its message to the receiver that has waited longest for such a message, so that
//! no later receiver takes it. Senders that wait for room try again when a message has been taken.

use crate::errno::Errno;
use crate::event_count::EventCount;
use crate::heap;
use crate::numbered::{Keyed, Numbered, Rights, seconds};
use crate::process::Thread;
use crate::single::Single;
use crate::system::Lock;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use metal::Metal;
use sync::adaptive::Adaptive;

/// The queues.
pub static MESSAGES: Single<Lock<Numbered<Arc<Queue>>>> = Single::new();

/// The most queues.
pub const MOST: usize = 32_000;
/// The most bytes of a message.
pub const LONGEST: usize = 8192;
/// The most bytes of messages in a new queue.
pub const ROOM: usize = 16_384;

/// A message.
pub struct Message {
    /// The message's type, above 0.
    pub kind: i64,
    /// The message's bytes.
    pub text: Vec<u8>,
}

/// The choice of the message to be received: the first of those allowed.
#[derive(Clone, Copy, Debug)]
pub enum Choice {
    /// Any message.
    Any,
    /// A message of this type.
    Of(i64),
    /// A message of any other type.
    Except(i64),
    /// A message of the lowest type in the queue, up to this type.
    UpTo(i64),
}

impl Choice {
    /// Returns true if a message of this type may be received.
    fn allows(self, kind: i64) -> bool {
        match self {
            Choice::Any => true,
            Choice::Of(wanted) => kind == wanted,
            Choice::Except(other) => kind != other,
            Choice::UpTo(most) => kind <= most,
        }
    }
}

/// A queue.
pub struct Queue {
    /// The key by which it is found; 0 for none.
    pub key: i32,
    /// The state, under its lock.
    pub state: Lock<State>,
    /// Counts the outcomes of receivers' calls.
    outcomes: EventCount,
    /// Counts changes of the room, for which senders wait.
    rooms: EventCount,
}

/// The locked state of a queue.
type Guard<'a> = sync::MutexGuard<'a, Metal, Adaptive<Metal>, State>;

/// A waiting receiver.
struct Receiver {
    choice: Choice,
    /// The most bytes that the receiver takes.
    most: usize,
    pid: u32,
    /// The outcome of its call, once another thread has set it under the queue's lock.
    outcome: Lock<Option<Result<Message, Errno>>>,
}

/// The state of a queue.
pub struct State {
    /// Who may use the queue.
    pub rights: Rights,
    /// The messages, the oldest first.
    pub messages: VecDeque<Message>,
    /// The number of bytes in the messages.
    pub bytes: usize,
    /// The most bytes, which is also the most messages.
    pub room: usize,
    /// The processes that last sent and received; 0 for none.
    pub last: [u32; 2],
    /// When they did so, and when the queue was last changed, in seconds since 1970; 0 for never.
    pub times: [u64; 3],
    /// The waiting receivers, the oldest first.
    receivers: Vec<Arc<Receiver>>,
    /// The number of waiting senders.
    senders: usize,
    /// True if the queue has been removed.
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
                receivers: Vec::new(),
                senders: 0,
                is_removed: false,
            }),
            outcomes: EventCount::default(),
            rooms: EventCount::default(),
        })
    }

    /// Adds a message when there is room. Fails with [`Errno::AGAIN`] if there is none and the
    /// thread does not wait.
    pub fn send(&self, thread: &Thread, message: Message, waits: bool) -> Result<(), Errno> {
        loop {
            // Read before the attempt, so that a change that comes in time counts.
            let is_disturbed = thread.is_disturbed();
            let mut state = self.state.lock();
            if state.is_removed {
                return Err(Errno::IDRM);
            }
            if state.has_room(message.text.len()) {
                state.messages.try_reserve(1).map_err(|_| Errno::NOMEM)?;
                (state.last[0], state.times[0]) = (thread.process.pid, seconds());
                if state.deliver(message) {
                    self.outcomes.advance();
                    drop(state);
                    self.outcomes.wake();
                }
                return Ok(());
            }
            if !waits {
                return Err(Errno::AGAIN);
            }
            if is_disturbed {
                return Err(Errno::INTR);
            }
            state.senders += 1;
            let seen = self.rooms.read();
            drop(state);
            self.rooms.wait(seen);
            self.state.lock().senders -= 1;
        }
    }

    /// Takes a message when there is one. Fails with [`Errno::NOMSG`] if there is none and the
    /// thread does not wait, and with [`Errno::TOOBIG`], leaving the message, if that has more than
    /// `most` bytes.
    pub fn receive(
        &self,
        thread: &Thread,
        choice: Choice,
        most: usize,
        waits: bool,
    ) -> Result<Message, Errno> {
        let mut state = self.state.lock();
        if state.is_removed {
            return Err(Errno::IDRM);
        }
        let pid = thread.process.pid;
        if let Some(message) = state.take(choice, most, pid)? {
            let wakes = state.senders > 0;
            self.rooms.advance();
            drop(state);
            if wakes {
                self.rooms.wake();
            }
            return Ok(message);
        }
        if !waits {
            return Err(Errno::NOMSG);
        }
        let receiver = Arc::new(Receiver {
            choice,
            most,
            pid,
            outcome: Lock::new(None),
        });
        heap::push(&mut state.receivers, receiver.clone())?;
        self.wait(thread, state, &receiver)
    }

    /// Waits until the receiver has an outcome, or the thread is disturbed.
    fn wait<'a>(
        &'a self,
        thread: &Thread,
        mut state: Guard<'a>,
        receiver: &Arc<Receiver>,
    ) -> Result<Message, Errno> {
        loop {
            if let Some(outcome) = receiver.outcome.lock().take() {
                return outcome;
            }
            if thread.is_disturbed() {
                state.receivers.retain(|it| !Arc::ptr_eq(it, receiver));
                return Err(Errno::INTR);
            }
            let seen = self.outcomes.read();
            drop(state);
            self.outcomes.wait(seen);
            state = self.state.lock();
        }
    }

    /// A copy of the message with this number, counted from the oldest; an error if it has more
    /// than `most` bytes.
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

    /// Changes rights or room, and lets waiting senders try again.
    pub fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        self.rooms.advance();
        drop(state);
        self.rooms.wake();
    }

    /// Marks the queue as removed, and tells the threads that wait.
    pub fn remove(&self) {
        self.change(|state| {
            state.is_removed = true;
            for receiver in state.receivers.drain(..) {
                *receiver.outcome.lock() = Some(Err(Errno::IDRM));
            }
            self.outcomes.advance();
        });
        self.outcomes.wake();
    }
}

impl State {
    /// Gives a message to the first receiver that waits for such a message, or adds it to the
    /// queue. A receiver for which it is too long gets that error, and the next one gets the
    /// message. Returns true if a receiver has got an outcome.
    fn deliver(&mut self, message: Message) -> bool {
        let mut has_ended = false;
        let takes = |it: &Arc<Receiver>| it.choice.allows(message.kind);
        while let Some(at) = self.receivers.iter().position(takes) {
            let receiver = self.receivers.remove(at);
            has_ended = true;
            if message.text.len() > receiver.most {
                *receiver.outcome.lock() = Some(Err(Errno::TOOBIG));
                continue;
            }
            (self.last[1], self.times[1]) = (receiver.pid, seconds());
            *receiver.outcome.lock() = Some(Ok(message));
            return true;
        }
        self.bytes += message.text.len();
        self.messages.push_back(message);
        has_ended
    }

    /// Takes the message to be received, if there is one.
    fn take(&mut self, choice: Choice, most: usize, pid: u32) -> Result<Option<Message>, Errno> {
        let Some(place) = self.find(choice) else {
            return Ok(None);
        };
        let bytes = self.messages[place].text.len();
        if bytes > most {
            return Err(Errno::TOOBIG);
        }
        self.bytes -= bytes;
        (self.last[1], self.times[1]) = (pid, seconds());
        Ok(self.messages.remove(place))
    }

    /// Returns true if there is room for a message of this many bytes.
    fn has_room(&self, bytes: usize) -> bool {
        self.bytes + bytes <= self.room && self.messages.len() < self.room
    }

    /// The position of the message to be received.
    fn find(&self, choice: Choice) -> Option<usize> {
        let kinds = self.messages.iter().map(|message| message.kind);
        let mut allowed = kinds.enumerate().filter(|&(_, kind)| choice.allows(kind));
        let found = match choice {
            // The first one of the lowest type.
            Choice::UpTo(_) => allowed.min_by_key(|&(_, kind)| kind),
            _ => allowed.next(),
        };
        found.map(|(place, _)| place)
    }
}
