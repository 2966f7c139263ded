//! The tags of spaces: a bit for each, set while a space has the tag.
//!
//! A space's tag is that of its TLB entries, too, if the machine has that tag. The other spaces
//! share tag 0, which is no space's own: a CPU flushes its entries with it whenever it begins to
//! translate for one of them ([`crate::Pmap::activate`]). Tags that the machine has go out first
//! (decision 18).
//!
//! Each CPU begins its search in a part of its own, so that CPUs that make and drop spaces
//! concurrently write different lines, as long as there are no more than 128 of them and none has
//! more than its part. A CPU that finds nothing there looks everywhere: a tag is not refused while
//! one is free all the time.

#[cfg(test)]
mod model;

use crate::error::{Error, Resource};
use crate::heap::filled;
use alloc::boxed::Box;
use core::ops::Range;
use machine::{Asid, Atomic, AtomicInt, CpuRange, Machine, Ordering, Pinned};

/// Words for all tags that there are.
const WORDS: usize = (1 << 16) / 64;

/// The tag of TLB entries of all spaces without a tag of the machine's own.
pub(crate) const SHARED: Asid = Asid(0);

/// The tags in use. 8 KiB.
pub(crate) struct Asids<M: Machine> {
    cpus: CpuRange,
    /// The number of tags that the machine has.
    machines: usize,
    /// Bit *b* of word *w* is tag 64 *w* + *b*. Tag 0 is never free.
    words: Box<[Words<M>]>,
}

/// A cache line of words, so that CPUs change different lines.
#[repr(align(64))]
struct Words<M: Machine>([M::AtomicU64; LINE]);

const LINE: usize = 8;

impl<M: Machine> Asids<M> {
    /// All tags free, on a machine that has `machines` of them.
    pub(crate) fn new(cpus: CpuRange, machines: usize) -> Result<Self, Error> {
        let line = || Words::<M>(core::array::from_fn(|_| M::AtomicU64::new(0)));
        let words = filled(WORDS / LINE, line)?;
        words[0].0[0].store(1, Ordering::Relaxed);
        Ok(Asids {
            cpus,
            machines,
            words,
        })
    }

    /// The tag of the TLB entries of the space with `tag`.
    pub(crate) fn of_entries(&self, tag: Asid) -> Asid {
        if usize::from(tag.0) < self.machines {
            tag
        } else {
            SHARED
        }
    }

    pub(crate) fn label(&self) {
        M::label_value(&*self.words, "Vm.asids");
    }

    /// Takes a tag. O(1) while the CPU's part has one, at most O(tags / 64).
    pub(crate) fn take(&self) -> Result<Asid, Error> {
        // The words of the machine's tags, then the others.
        let own = self.machines.div_ceil(64).min(WORDS);
        let cpu = self.cpus.index_of(M::pin().cpu());
        assert!(
            cpu < self.cpus.len(),
            "a space is made on no CPU of its machine"
        );
        let from = |words: Range<usize>| {
            let start = words.start + cpu * words.len() / self.cpus.len();
            (start..words.end).chain(words.start..start)
        };
        let found = from(0..own)
            .chain(from(own..WORDS))
            .filter_map(|index| Some((index, self.take_in(index)?)))
            .next();
        let (index, bit) = found.ok_or(Error::OutOfMemory(Resource::Asids))?;
        debug_assert!(index * 64 + bit as usize > 0, "the common tag is taken");
        Ok(Asid((index * 64) as u16 + bit as u16))
    }

    /// Takes a bit of a word, if one is free.
    fn take_in(&self, index: usize) -> Option<u32> {
        let word = self.word(index);
        let mut now = word.load(Ordering::Relaxed);
        while now != u64::MAX {
            let bit = (!now).trailing_zeros();
            // Acquire: pairs with `give`; no TLB has an entry with the tag.
            now = word.fetch_or(1 << bit, Ordering::Acquire);
            if now & 1 << bit == 0 {
                return Some(bit);
            }
        }
        None
    }

    /// Gives a tag back. No TLB has an entry of it any more.
    pub(crate) fn give(&self, asid: Asid) {
        debug_assert!(asid != SHARED, "the common tag is no space's");
        let (index, bit) = (usize::from(asid.0) / 64, asid.0 % 64);
        // Release: the tag's next owner comes after the last flush of its entries.
        let old = self.word(index).fetch_and(!(1 << bit), Ordering::Release);
        debug_assert!(old & 1 << bit != 0, "a tag is given back twice");
    }

    fn word(&self, index: usize) -> &M::AtomicU64 {
        &self.words[index / LINE].0[index % LINE]
    }
}
