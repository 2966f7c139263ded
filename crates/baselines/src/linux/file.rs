//! Files as Linux's VMAs know them: the open file, and the file's list of all its mappings.
//!
//! A mapping opens its file anew, like `exec` and the dynamic linker; a fork shares the open file.
//! So a daemon's children count their references, and with the read-ahead of 2.6.39 each fault, in
//! one `struct file`.

use super::Version;
use super::list::{List, Node};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr::NonNull;
use machine::{Atomic, AtomicInt, Machine, Ordering};
use sync::watch::Watched;
use sync::{RawGuard, RawLock, lock_class};

lock_class!(
    /// A file's list of mappings (`i_mmap_lock`, from 3.0 on `i_mmap_mutex`).
    pub IMmap = "i_mmap", rank 31
);

type IMmapLock<M, V> = Watched<M, <V as Version>::Lock<M>, IMmap>;

/// All mappings of a file (`address_space`), under its lock. Linux has a priority tree, in which
/// mappings of the same part are a list; here all are one list.
pub struct AddressSpace<M: Machine, V: Version> {
    lock: IMmapLock<M, V>,
    mappings: List<M>,
}

/// A file's list of mappings, locked.
pub(super) struct Locked<'a, M: Machine, V: Version> {
    mappings: &'a List<M>,
    _held: RawGuard<'a, M, IMmapLock<M, V>>,
}

impl<M: Machine, V: Version> AddressSpace<M, V> {
    pub(super) fn new() -> Self {
        AddressSpace {
            lock: IMmapLock::<M, V>::new(),
            mappings: List::new(),
        }
    }

    #[track_caller]
    pub(super) fn lock(&self) -> Locked<'_, M, V> {
        Locked {
            mappings: &self.mappings,
            _held: RawGuard::new(&self.lock),
        }
    }
}

impl<M: Machine, V: Version> Locked<'_, M, V> {
    /// # Safety
    /// `node` is in no list, and stays in place while it is in this one.
    pub(super) unsafe fn push(&self, node: &Node<M>) {
        // SAFETY: this guard holds the list's lock, and the caller answers for the node.
        unsafe { self.mappings.push(node) };
    }

    /// # Safety
    /// `node` is in this list.
    pub(super) unsafe fn remove(&self, node: &Node<M>) {
        // SAFETY: this guard holds the list's lock, and the caller answers for the node.
        unsafe { self.mappings.remove(node) };
    }
}

/// An open file (`struct file`), as far as mappings use it.
#[repr(C)]
struct OpenFile<M: Machine, V: Version> {
    count: OnLine<M::AtomicUsize>,
    /// `f_ra.mmap_miss`, two cache lines further in Linux: faults that found no page, less those
    /// that found one.
    misses: OnLine<M::AtomicU32>,
    of: Arc<AddressSpace<M, V>>,
}

/// A value on a cache line of its own.
#[repr(align(64))]
struct OnLine<T>(T);

/// A counted reference to an open file.
pub(super) struct FileRef<M: Machine, V: Version>(NonNull<OpenFile<M, V>>);

// SAFETY: it counts a reference to an object that CPUs share by atomics and locks.
unsafe impl<M: Machine, V: Version> Send for FileRef<M, V> {}
// SAFETY: it counts a reference to an object that CPUs share by atomics and locks.
unsafe impl<M: Machine, V: Version> Sync for FileRef<M, V> {}

impl<M: Machine, V: Version> FileRef<M, V> {
    pub(super) fn open(of: Arc<AddressSpace<M, V>>) -> Self {
        let file = Box::leak(Box::new(OpenFile {
            count: OnLine(M::AtomicUsize::new(1)),
            misses: OnLine(M::AtomicU32::new(0)),
            of,
        }));
        M::label_value(&file.count, "file.count");
        M::label_value(&file.misses, "file.mmap_miss");
        FileRef(NonNull::from(file))
    }

    fn file(&self) -> &OpenFile<M, V> {
        // SAFETY: the counted reference keeps the file.
        unsafe { self.0.as_ref() }
    }

    /// All mappings of the file.
    pub(super) fn mappings(&self) -> &AddressSpace<M, V> {
        &self.file().of
    }

    /// Returns true if both are the same file, however often opened.
    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file().of, &other.file().of)
    }

    /// Counts a fault that found its page in memory, for read-ahead. A plain load and store, as in
    /// Linux.
    pub(super) fn note_hit(&self) {
        let misses = &self.file().misses.0;
        let now = misses.load(Ordering::Relaxed);
        misses.store(now.wrapping_sub(1), Ordering::Relaxed);
    }
}

impl<M: Machine, V: Version> Clone for FileRef<M, V> {
    fn clone(&self) -> Self {
        // Relaxed: this reference keeps the file.
        self.file().count.0.fetch_add(1, Ordering::Relaxed);
        FileRef(self.0)
    }
}

impl<M: Machine, V: Version> Drop for FileRef<M, V> {
    fn drop(&mut self) {
        // AcqRel: the task that closes it sees what others did before they dropped theirs.
        if self.file().count.0.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: it comes from a box, and this was the last reference.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}
