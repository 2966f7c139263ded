//! What an event is expected to have, from the events before it in its block.

use std::collections::HashMap;

/// The number of kinds of entries.
pub const KINDS: usize = 27;

/// What the next event is expected to have.
pub struct Expected {
    /// Bytes of a page.
    pub page: u64,
    /// The thread of the event before, what its next event has, and its time.
    pub thread: u32,
    pub own: OfThread,
    pub at: u64,
    /// The mapping that is made next.
    pub made: u32,
    /// Of the other threads.
    threads: HashMap<u32, OfThread>,
    mappings: HashMap<u32, OfMapping>,
    /// By thread, the number of the next wake-up that a wait names.
    wakes: HashMap<u32, u32>,
}

/// What a thread's next event is expected to have.
#[derive(Clone, Copy, Default)]
pub struct OfThread {
    /// The computing before its last event, by the event's kind.
    pub computed: [u64; KINDS],
    /// The mapping that it last worked on.
    pub mapping: u32,
    /// The length that it last mapped.
    pub length: u64,
}

/// What the next work on a mapping is expected to have.
#[derive(Clone, Copy, Default)]
pub struct OfMapping {
    /// Where the last work on it ended.
    pub offset: u64,
    /// Its length when it was made, or that of the last work.
    pub length: u64,
}

impl Expected {
    /// At the beginning of a block.
    pub fn new(page: u32) -> Self {
        Expected {
            page: page.into(),
            thread: 0,
            own: OfThread::default(),
            at: 0,
            made: 0,
            threads: HashMap::new(),
            mappings: HashMap::new(),
            wakes: HashMap::new(),
        }
    }

    /// The event is of this thread.
    pub fn turn_to(&mut self, thread: u32) {
        if thread != self.thread {
            let own = self.threads.remove(&thread).unwrap_or_default();
            let before = std::mem::replace(&mut self.own, own);
            self.threads.insert(self.thread, before);
            self.thread = thread;
        }
    }

    /// Of this mapping.
    pub fn of_mapping(&mut self, mapping: u32) -> &mut OfMapping {
        self.mappings.entry(mapping).or_default()
    }

    /// Of this thread's wake-ups.
    pub fn wake(&mut self, thread: u32) -> &mut u32 {
        self.wakes.entry(thread).or_default()
    }
}
