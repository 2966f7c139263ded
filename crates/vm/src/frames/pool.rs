//! Free frames that are in no cache, in aligned runs.
//!
//! The descriptors of [`RUN`] neighbouring frames fill whole cache lines (256 bytes, four
//! lines). Frames go out run by run, so CPUs that were handed different batches write no
//! common line of descriptors. Frames that come back one by one make up their runs again;
//! only when no run is whole are frames of one run handed to several CPUs.

use alloc::vec::Vec;
use machine::Frame;

/// Frames in a run: the bits of a byte.
pub(crate) const RUN: usize = 8;
const WHOLE: u8 = u8::MAX;

/// A byte for each run, and the list of whole runs. Nothing in it ever grows.
pub(super) struct Pool {
    /// A bit for each free frame, by run.
    free: Vec<u8>,
    /// The runs all of whose frames are free, each once.
    whole: Vec<u32>,
    /// Free frames.
    count: usize,
    /// The run at which the search for broken ones goes on.
    at: usize,
}

impl Pool {
    /// All of `frames` frames.
    pub(super) fn new(frames: usize) -> Self {
        let runs = frames.div_ceil(RUN);
        let mut pool = Pool {
            free: (0..runs).map(|_| 0).collect(),
            whole: Vec::with_capacity(runs),
            count: 0,
            at: 0,
        };
        // Taken from the end, so frames go out in ascending order.
        for frame in (0..frames as u32).rev() {
            pool.put(Frame(frame));
        }
        pool
    }

    /// Where the pool keeps what, in bytes.
    pub(super) fn memory(&self) -> [(*const (), usize); 2] {
        let whole = self.whole.capacity() * size_of::<u32>();
        [
            (self.free.as_ptr().cast(), self.free.len()),
            (self.whole.as_ptr().cast(), whole),
        ]
    }

    /// Free frames.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Takes a frame in.
    pub(super) fn put(&mut self, frame: Frame) {
        let run = frame.index() / RUN;
        self.free[run] |= 1 << (frame.index() % RUN);
        self.count += 1;
        if self.free[run] == WHOLE {
            self.whole.push(run as u32);
        }
    }

    /// Takes frames out, the last of them the lowest of its run, until there are `wanted`
    /// or none is left. O(wanted), and O(runs) when no run is whole.
    pub(super) fn take(&mut self, wanted: usize, mut sink: impl FnMut(Frame)) {
        let mut left = wanted.min(self.count);
        self.count -= left;
        while left > 0 {
            let run = match self.whole.pop() {
                Some(run) => run as usize,
                None => self.next_broken(),
            };
            while left > 0 && self.free[run] != 0 {
                let bit = self.free[run].ilog2();
                self.free[run] &= !(1 << bit);
                sink(Frame((run * RUN) as u32 + bit));
                left -= 1;
            }
        }
    }

    /// A run with free frames; there is one.
    fn next_broken(&mut self) -> usize {
        while self.free[self.at] == 0 {
            self.at = (self.at + 1) % self.free.len();
        }
        self.at
    }
}
