//! The free frames of 2 MiB.

use super::RUN;

/// Frames in a block: those of a page of 2 MiB.
pub(crate) const BLOCK: usize = 512;
/// Runs in a block: the bits of a word.
const RUNS: usize = BLOCK / RUN;
const WHOLE_RUN: u8 = u8::MAX;
const WHOLE: u64 = u64::MAX;

const _: () = assert!(RUN == u8::BITS as usize && RUNS == u64::BITS as usize);
/// Bytes for 2 MiB of memory: 0.004 %.
const _: () = assert!(size_of::<Block>() == 80);

/// The part of a block that is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// All of it is free.
    Whole,
    /// It is broken, and some runs of it are free.
    Runs,
    /// Frames of it are free, but no run.
    Scraps,
    /// Nothing is free.
    Empty,
}

/// 512 aligned frames.
#[derive(Clone)]
pub(super) struct Block {
    /// A bit for each free frame, by run.
    free: [u8; RUNS],
    /// A bit for each run all of whose frames are free.
    whole: u64,
    /// Its neighbours among the blocks of its kind; the pool's.
    pub(super) next: u32,
    pub(super) previous: u32,
}

impl Block {
    /// A block with no free frame, in no list.
    pub(super) const EMPTY: Block = Block {
        free: [0; RUNS],
        whole: 0,
        next: u32::MAX,
        previous: u32::MAX,
    };

    pub(super) fn kind(&self) -> Kind {
        match self.whole {
            WHOLE => Kind::Whole,
            0 if self.free == [0; RUNS] => Kind::Empty,
            0 => Kind::Scraps,
            _ => Kind::Runs,
        }
    }

    /// Adds the frame at `offset`.
    pub(super) fn put(&mut self, offset: usize) {
        let (run, bit) = (offset / RUN, 1 << (offset % RUN));
        debug_assert!(self.free[run] & bit == 0, "a frame that is free is put");
        self.free[run] |= bit;
        if self.free[run] == WHOLE_RUN {
            self.whole |= 1 << run;
        }
        debug_assert!(self.is_sound(run), "a run is whole that has not all frames");
    }

    /// Returns true if the run's bit agrees with its frames' bits.
    fn is_sound(&self, run: usize) -> bool {
        (self.whole >> run & 1 != 0) == (self.free[run] == WHOLE_RUN)
    }

    /// Takes at most `wanted` frames out of one run, a whole one if there is one; the lowest is the
    /// last. Returns their number. At least one must be free.
    #[inline]
    pub(super) fn take(&mut self, wanted: usize, mut sink: impl FnMut(usize)) -> usize {
        let run = match self.whole {
            0 => {
                let scraps = self.free.iter().position(|&free| free != 0);
                scraps.expect("a block with free frames")
            }
            whole => whole.trailing_zeros() as usize,
        };
        debug_assert!(wanted > 0, "no frame is asked for");
        debug_assert!(self.is_sound(run), "a run is whole that has not all frames");
        self.whole &= !(1 << run);
        if self.free[run] == WHOLE_RUN && wanted >= RUN {
            self.free[run] = 0;
            (0..RUN).rev().for_each(|at| sink(run * RUN + at));
            return RUN;
        }
        let mut taken = 0;
        while taken < wanted && self.free[run] != 0 {
            let bit = self.free[run].ilog2();
            self.free[run] &= !(1 << bit);
            sink(run * RUN + bit as usize);
            taken += 1;
        }
        debug_assert!(self.is_sound(run), "a run is whole that has not all frames");
        taken
    }

    /// Adds all frames at once.
    pub(super) fn fill(&mut self) {
        debug_assert!(self.kind() == Kind::Empty, "frames that are free are put");
        self.free = [WHOLE_RUN; RUNS];
        self.whole = WHOLE;
    }

    /// Takes all frames out.
    pub(super) fn clear(&mut self) {
        debug_assert!(
            self.kind() == Kind::Whole,
            "a block goes out with others' frames"
        );
        self.free = [0; RUNS];
        self.whole = 0;
    }
}
