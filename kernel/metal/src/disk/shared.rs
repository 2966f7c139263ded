//! Memory that devices access: all of the direct map, at its physical addresses.

use crate::memory::{DIRECT_MAP, MAPPED, physical};
use crate::stacks;
use alloc::alloc::{Layout, alloc_zeroed, dealloc};
use core::ptr::NonNull;
use machine::PAGE_SIZE;
use virtio_drivers::{BufferDirection, Hal, PhysAddr};

/// The kernel's memory, as devices access it.
pub(super) struct Shared;

fn layout(pages: usize) -> Layout {
    Layout::from_size_align(pages * PAGE_SIZE, PAGE_SIZE).expect("some pages")
}

// SAFETY: memory comes from the heap, which lies in the direct map, as all that is shared does; its
// addresses there are the physical ones and `DIRECT_MAP`.
unsafe impl Hal for Shared {
    /// Allocates memory; the address 0 means that memory is short.
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        // SAFETY: the driver asks for some pages.
        let place = NonNull::new(unsafe { alloc_zeroed(layout(pages)) });
        place.map_or((0, NonNull::dangling()), |place| {
            (address(place.addr().get()), place)
        })
    }

    unsafe fn dma_dealloc(_: PhysAddr, place: NonNull<u8>, pages: usize) -> i32 {
        // SAFETY: `dma_alloc` has made it.
        unsafe { dealloc(place.as_ptr(), layout(pages)) };
        0
    }

    unsafe fn mmio_phys_to_virt(address: PhysAddr, bytes: usize) -> NonNull<u8> {
        let end = address + bytes as u64;
        assert!(end <= MAPPED, "a device's registers lie at {address:#x}");
        let place = physical::<u8>(address).cast_mut();
        NonNull::new(place).expect("the direct map does not begin at 0")
    }

    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        address(buffer.addr().get())
    }

    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}

/// The physical address of a place in the direct map.
fn address(place: usize) -> PhysAddr {
    assert!(
        (DIRECT_MAP..stacks::BASE).contains(&place),
        "devices do not see {place:#x}"
    );
    (place - DIRECT_MAP) as PhysAddr
}
