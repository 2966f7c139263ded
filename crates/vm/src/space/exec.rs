//! Becoming another program.

use super::{HEAP_START, Space};
use crate::policy::{MapLocking, Policies};
use crate::tree::Flags;
use machine::Platform;

impl<M: Platform, P: Policies<M>> Space<M, P> {
    /// Unmaps all, as `exec` does before it maps the new program. When it returns, no CPU
    /// reaches anything that was there. Limits stay; new memory is not locked any more.
    /// O(slots + pages).
    pub fn exec(&self) {
        let _write = self.pmap.locking.write();
        let mut heap_end = self.heap_end.write();
        self.clear();
        let mut all = self.pmap.tree.lock_all();
        self.rules_mut(&mut all).future = Flags::NONE;
        *heap_end = HEAP_START;
    }
}
