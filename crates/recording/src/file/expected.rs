//! What an event is expected to have, from the events before it in its block.

use std::collections::HashMap;

/// The number of kinds of entries.
pub const KINDS: usize = 27;

/// What the next event is expected to have.
pub struct Expected {
    /// Bytes of a page.
    pub page: u64,
    /// The thread of the event before, and its time.
    pub thread: u32,
    pub at: u64,
    /// The mapping that is made next.
    pub made: u32,
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
            at: 0,
            made: 0,
            threads: HashMap::new(),
            mappings: HashMap::new(),
            wakes: HashMap::new(),
        }
    }

    /// Of the thread of the event.
    pub fn of_thread(&mut self) -> &mut OfThread {
        self.threads.entry(self.thread).or_default()
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
