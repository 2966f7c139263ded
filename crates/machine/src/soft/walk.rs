//! The hardware's page walk: x86-64 tables of four levels.
//!
//! Per level, from the root: the entry must be present, lead on or map, and be the
//! tasks'; a write needs the writable bit at every level. The walk then sets the
//! accessed bit in each entry it used, and for a write the dirty bit in the one that
//! maps, by compare-exchange on the value it judged. An entry changed meanwhile is
//! judged again, so no bit is ever set in an entry that is absent or forbids the
//! access at that instant, and a kernel that exchanges an entry for 0 gets the dirty
//! bit of every write the walker has let through.

use super::Entry;
use crate::{Access, Atomic, Frame, Memory, Ordering, PAGE_SHIFT, PageFault, pte};

/// Translates `address` with the tables at `root`. O(levels).
pub fn walk<M: Memory>(
    memory: &M,
    root: Frame,
    address: usize,
    access: Access,
) -> Result<Entry, PageFault> {
    let fault = |present| {
        Err(PageFault {
            address,
            access,
            present,
        })
    };
    if address >= pte::USER_END {
        return fault(false);
    }
    let mut table = root;
    let mut writable = true;
    for level in (0..pte::LEVELS).rev() {
        let word = memory.word(table, pte::index(address, level));
        // Acquire: pairs with the release by which the kernel linked a table or a
        // page, so what the entry leads to is seen initialised.
        let mut entry = word.load(Ordering::Acquire);
        loop {
            if entry & pte::PRESENT == 0 {
                return fault(false);
            }
            let may_write = writable && entry & pte::WRITABLE != 0;
            if entry & pte::USER == 0 || (access == Access::Write && !may_write) {
                return fault(true);
            }
            let maps = level == 0 || (level == 1 && entry & pte::HUGE != 0);
            let mut used = entry | pte::ACCESSED;
            if maps && access == Access::Write {
                used |= pte::DIRTY;
            }
            if used != entry {
                // Release: who takes the entry away sees the bits set. Acquire: as above.
                let seen = word.compare_exchange(entry, used, Ordering::AcqRel, Ordering::Acquire);
                if let Err(changed) = seen {
                    entry = changed;
                    continue;
                }
            }
            writable = may_write;
            if maps {
                // The low page-number bits of a larger page come from the address.
                let inside = (address & (pte::span(level) - 1)) >> PAGE_SHIFT;
                let first = pte::frame(entry).0;
                // Reserved bits to the hardware; no kernel means to set them.
                let aligned = first & ((pte::span(level) >> PAGE_SHIFT) - 1) as u32 == 0;
                assert!(
                    aligned,
                    "a 2 MiB page at Frame({first}), which is not aligned"
                );
                return Ok(Entry {
                    frame: Frame(first + inside as u32),
                    large: level == 1,
                    writable,
                    // A page may be dirty from before it was made read-only.
                    dirty: writable && used & pte::DIRTY != 0,
                    note: 0,
                });
            }
            table = pte::frame(entry);
            break;
        }
    }
    unreachable!("level 0 maps or faults")
}
