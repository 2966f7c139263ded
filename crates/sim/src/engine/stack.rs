//! Stacks of contexts, in the machine's window.

use crate::arena::{Arena, STACK};
use corosensei::stack::{Stack, StackPointer};

/// Stacks begin at different places in their megabyte; otherwise the hot ends of all stacks would
/// be in the same sets of the host's caches.
const COLOURS: usize = 64;
const COLOUR: usize = 17 * 64;

/// A context's stack; lives as long as the arena.
pub(super) struct ContextStack {
    base: StackPointer,
    limit: StackPointer,
}

impl ContextStack {
    pub(super) fn new(arena: &Arena, index: usize) -> Self {
        let bottom = arena.stack_bottom(index);
        let top = bottom + STACK - index % COLOURS * COLOUR;
        let pointer = |address| StackPointer::new(address).expect("windows are not at 0");
        ContextStack {
            base: pointer(top & !63),
            limit: pointer(bottom),
        }
    }
}

// SAFETY: the lowest page of the stack's megabyte is a guard (`Arena::new`), and above it
// lies much more than the minimum; both ends are 64-byte aligned.
unsafe impl Stack for ContextStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}
