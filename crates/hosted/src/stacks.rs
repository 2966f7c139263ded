//! Stacks of contexts: one reservation of addresses, which the host fills as they are touched.

use core::ptr::{NonNull, null_mut};
use corosensei::stack::{Stack, StackPointer};
use machine::PAGE_SIZE;
use std::io;

/// Bytes of a stack, its guard page included.
const STACK: usize = 1 << 20;

/// Stacks begin at different places in their megabyte; otherwise the hot ends of all stacks would
/// be in the same sets of the caches.
const COLOURS: usize = 64;
const COLOUR: usize = 17 * 64;

/// The stacks of a machine's contexts, by number.
pub(crate) struct Stacks {
    base: NonNull<u8>,
    count: usize,
}

// SAFETY: the reservation is addresses; the contexts say which CPU uses the stacks.
unsafe impl Send for Stacks {}
// SAFETY: the contexts say which CPU uses which stack.
unsafe impl Sync for Stacks {}

impl Stacks {
    /// Addresses for `count` stacks; none may be used yet.
    pub(crate) fn reserve(count: usize) -> io::Result<Self> {
        // SAFETY: a new anonymous mapping at an address of the host's choice.
        let base = unsafe {
            libc::mmap(
                null_mut(),
                count * STACK,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Stacks { base, count })
    }

    /// Makes stack `index` usable, but for its guard page.
    pub(crate) fn open(&self, index: usize) -> io::Result<()> {
        let above_guard = self.bottom(index) + PAGE_SIZE;
        // SAFETY: the pages lie in the reservation, and no context uses them yet.
        let done = unsafe {
            libc::mprotect(
                above_guard as *mut libc::c_void,
                STACK - PAGE_SIZE,
                libc::PROT_READ | libc::PROT_WRITE,
            )
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The stack `index`, which is open. It is used while these live, by one context at a time.
    pub(crate) fn stack(&self, index: usize) -> ContextStack {
        let pointer = |address| StackPointer::new(address).expect("mappings are not at 0");
        let top = self.bottom(index) + STACK - index % COLOURS * COLOUR;
        ContextStack {
            base: pointer(top),
            limit: pointer(self.bottom(index)),
        }
    }

    /// The stack that contains the address, if one does.
    pub(crate) fn index_of(&self, address: usize) -> Option<usize> {
        let index = address.checked_sub(self.base.addr().get())? / STACK;
        (index < self.count).then_some(index)
    }

    fn bottom(&self, index: usize) -> usize {
        assert!(index < self.count, "no stack {index} among {}", self.count);
        self.base.as_ptr().expose_provenance() + index * STACK
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        // SAFETY: `drop` has the reservation exclusively: its contexts are gone.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.count * STACK) };
    }
}

/// One of the stacks.
pub(crate) struct ContextStack {
    base: StackPointer,
    limit: StackPointer,
}

// SAFETY: the lowest page of the stack's megabyte is its guard (`Stacks::open`), and above it lies
// much more than the minimum; both ends are 64-byte aligned, as a colour is.
unsafe impl Stack for ContextStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}
