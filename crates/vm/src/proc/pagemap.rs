//! `/proc/PID/pagemap`.

use crate::space::PagePlace;

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// Of a file, or of shared memory.
const OBJECT: u64 = 1 << 61;
const EXCLUSIVE: u64 = 1 << 56;
/// Where a slot's number begins, behind the number of its swap space (here always 0).
const SLOT: u32 = 5;

/// The word that says where a page is, as Linux's does to who may know frames: bit 63 in
/// memory, in the frame that the bits from 0 up tell; 62 in the swap space, in the slot
/// that the bits from 5 up tell; 61 an object's; 56 mapped nowhere else. Bit 55
/// (soft-dirty) is never set.
pub fn pagemap_entry(place: PagePlace) -> u64 {
    let bit = |set, bit| if set { bit } else { 0 };
    match place {
        PagePlace::Nowhere => 0,
        PagePlace::Swapped(slot) => SWAPPED | u64::from(slot) << SLOT,
        PagePlace::Present {
            frame,
            of_object,
            is_exclusive,
        } => {
            let marks = bit(of_object, OBJECT) | bit(is_exclusive, EXCLUSIVE);
            PRESENT | marks | u64::from(frame.0)
        }
    }
}
