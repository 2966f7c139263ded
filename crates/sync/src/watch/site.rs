//! Call sites of classes, numbered.
//!
//! A hash table that only grows: open addressing, one word per slot; one compare-and-swap adds an
//! entry. A look-up of a known site costs a hash and, in most cases, one read of a cache line that
//! is no longer written.

use super::ClassState;
use super::class::{MAX_CLASSES, class};
use core::panic::Location;
use core::ptr::{from_ref, with_exposed_provenance};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The most pairs of class and call site that there can be. Further sites of a class are counted
/// together.
pub const MAX_SITES: usize = 1024;

/// The most [`Site`]s that there can be.
pub(crate) const SITES: usize = MAX_CLASSES + MAX_SITES;

/// A pair of class and call site: below [`MAX_CLASSES`] the class with this number at an unrecorded
/// site, otherwise [`MAX_CLASSES`] plus a slot of [`SLOTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Site(pub(crate) u16);

/// `location address << CLASS_BITS | class number`, or 0.
static SLOTS: [AtomicUsize; MAX_SITES] = [const { AtomicUsize::new(0) }; MAX_SITES];

/// Bits of a slot that hold the class. The address has the rest: 48 bits, sign extended, which is
/// where x86-64 and AArch64 kernels and processes have their constants. A site whose address does
/// not fit is not recorded.
const CLASS_BITS: u32 = 16;
const _: () = assert!(usize::BITS == 64 && MAX_CLASSES <= 1 << CLASS_BITS);

/// Probes before the search for a site ends; the table is then all but full.
const PROBES: usize = 64;

impl Site {
    /// The number of this class at this site.
    #[inline]
    pub(crate) fn of(class: &'static ClassState, site: &'static Location<'static>) -> Site {
        let class = class.id();
        let address = from_ref(site).expose_provenance();
        let key = address << CLASS_BITS | class;
        if address_in(key) == address && class != 0 {
            let mut slot = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - MAX_SITES.ilog2());
            for _ in 0..PROBES {
                // Relaxed: the word is the whole entry; it points to a constant.
                let mut found = SLOTS[slot].load(Ordering::Relaxed);
                if found == 0 {
                    let put =
                        SLOTS[slot].compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed);
                    found = put.err().unwrap_or(key);
                }
                if found == key {
                    return Site((MAX_CLASSES + slot) as u16);
                }
                slot = (slot + 1) % MAX_SITES;
            }
        }
        Site(class as u16)
    }

    /// The class's number, 0 if it has none.
    pub(crate) fn class_id(self) -> usize {
        match (self.0 as usize).checked_sub(MAX_CLASSES) {
            None => self.0 as usize,
            Some(slot) => SLOTS[slot].load(Ordering::Relaxed) % (1 << CLASS_BITS),
        }
    }

    /// The class, if it has a number.
    pub(crate) fn class(self) -> Option<&'static ClassState> {
        class(self.class_id())
    }

    /// The call site, if it is recorded.
    pub(crate) fn location(self) -> Option<&'static Location<'static>> {
        let slot = (self.0 as usize).checked_sub(MAX_CLASSES)?;
        let key = SLOTS[slot].load(Ordering::Relaxed);
        // SAFETY: null in a free slot; otherwise the address of a `&'static Location`, exposed in
        // `of`, which has checked that all its bits are recovered.
        unsafe { with_exposed_provenance::<Location<'static>>(address_in(key)).as_ref() }
    }
}

/// The address in a slot.
fn address_in(key: usize) -> usize {
    (key as isize >> CLASS_BITS) as usize
}
