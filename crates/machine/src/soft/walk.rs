//! The hardware's page walk: x86-64 tables of four levels.
//!
//! At each level, from the root, the entry must be present, lead on or map, and belong to tasks; a
//! write needs the writable bit at every level, and a fetch must find the no-execute bit at none.
//! The walk then sets the accessed bit in each entry it used, and for a write the dirty bit in the
//! one that maps, by compare-exchange on the value it judged. An entry that changed meanwhile is
//! judged again, so no bit is ever set in an entry that is absent or forbids the access at that
//! instant, and a kernel that exchanges an entry for 0 gets the dirty bit of every write that the
//! walker has allowed.

use super::Entry;
use crate::{Access, Atomic, Frame, Memory, Ordering, PAGE_SHIFT, PageFault, pte};

/// Translates `address` with the tables at `root`. O(levels).
///
/// # Safety
/// `root` is a root table of the machine, and what its entries lead to are tables, during the call.
pub unsafe fn walk<M: Memory>(
    memory: &M,
    root: Frame,
    address: usize,
    access: Access,
) -> Result<Entry, PageFault> {
    let fault = |present| PageFault {
        address,
        access,
        present,
    };
    if address >= pte::USER_END {
        return Err(fault(false));
    }
    let mut table = root;
    let mut rights = Rights {
        writable: true,
        executable: true,
    };
    for level in (0..pte::LEVELS).rev() {
        // SAFETY: a table, so says the caller; the walker marks its entries, as hardware does.
        let word = unsafe { memory.word(table, pte::index(address, level)) };
        let entry;
        (entry, rights) = step::<M>(word, level, access, rights).map_err(fault)?;
        if maps(entry, level) {
            return Ok(mapped(entry, level, address, rights));
        }
        table = pte::frame(entry);
    }
    unreachable!("level 0 maps or faults")
}

/// The rights that the entries so far allow.
#[derive(Clone, Copy)]
struct Rights {
    writable: bool,
    executable: bool,
}

/// Returns true if an entry at `level` maps a page.
#[inline(always)]
fn maps(entry: u64, level: u32) -> bool {
    level == 0 || (level == 1 && entry & pte::HUGE != 0)
}

/// Checks the entry in `word` and marks it as used. Returns the entry as it is then and the rights
/// left; otherwise true if it forbids the access, false if it is absent.
#[inline(always)]
fn step<M: Memory>(
    word: &M::AtomicU64,
    level: u32,
    access: Access,
    rights: Rights,
) -> Result<(u64, Rights), bool> {
    // Acquire: pairs with the release by which the kernel linked a table or a page, so the contents
    // are seen initialised.
    let mut entry = word.load(Ordering::Acquire);
    loop {
        if entry & pte::PRESENT == 0 {
            return Err(false);
        }
        let left = Rights {
            writable: rights.writable && entry & pte::WRITABLE != 0,
            executable: rights.executable && entry & pte::NO_EXECUTE == 0,
        };
        let allowed = match access {
            Access::Read => true,
            Access::Write => left.writable,
            Access::Execute => left.executable,
        };
        if entry & pte::USER == 0 || !allowed {
            return Err(true);
        }
        let mut used = entry | pte::ACCESSED;
        if maps(entry, level) && access == Access::Write {
            used |= pte::DIRTY;
        }
        if used == entry {
            return Ok((entry, left));
        }
        // Release: a CPU that clears the entry sees the bits set. Acquire: pairs with the kernel's
        // release if the entry has changed, so the new table or page is seen initialised.
        match word.compare_exchange(entry, used, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Ok((used, left)),
            Err(changed) => entry = changed,
        }
    }
}

/// The translation of `address` by an entry that maps.
#[inline(always)]
fn mapped(entry: u64, level: u32, address: usize, rights: Rights) -> Entry {
    // The low page-number bits of a larger page come from the address.
    let inside = (address & (pte::span(level) - 1)) >> PAGE_SHIFT;
    let first = pte::frame(entry).0;
    // Reserved bits to the hardware; no kernel sets them on purpose.
    let aligned = first & ((pte::span(level) >> PAGE_SHIFT) - 1) as u32 == 0;
    assert!(
        aligned,
        "a 2 MiB page at Frame({first}), which is not aligned"
    );
    Entry {
        frame: Frame(first + inside as u32),
        large: level == 1,
        writable: rights.writable,
        // A page may be dirty from before it was made read-only.
        dirty: rights.writable && entry & pte::DIRTY != 0,
        executable: rights.executable,
        note: 0,
    }
}
