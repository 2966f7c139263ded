//! Memory objects, which several spaces can map.
//!
//! An object is a file's memory, read from and written to a [`Truncate`] store, or shared
//! anonymous memory: zero where never written, and in swap space ([`Slots`]) after it was
//! paged out. Its content at each page index is in a tree of 8-byte entries
//! (`entry`, `tree`); [`Attachment`]s say where it is mapped, and keep it.
//!
//! # Protocol
//! - **Look up** ([`Object::page`]): read the entry; retain its page unless that has no references
//!   any more; read the entry again. If it still has that frame, its reference kept the page while
//!   the new one was taken, and the page is the object's; if not, the look-up may have retained
//!   another page, and releases it. Nothing is written but the page's own reference count: faults
//!   of different pages share a line only if their descriptors do.
//! - **Fill** (`fill`): own the entry, look at the size again, read, publish.
//! - **Size**: [`Object::truncate`] writes the size, fences, and then takes the pages
//!   behind it away, waiting for entries that are owned. A task that fills or writes out
//!   owns the entry, fences, and then reads the size. So either it sees the new size, or
//!   the truncation waits for it.
//! - **Take away** (truncation): the entry shows nothing; then under the page's PV lock the page
//!   forgets the object; then all its mappings are removed, by a walk over the attachments that
//!   locks the slot of each. A fault reads the entry under its slot's lock: so the walk finds the
//!   mapping, or the fault finds the entry without the page (the pmap's module `attached`). Where
//!   mappings are listed instead ([`crate::system::ObjectPages`]) a fault lists its mapping under
//!   the PV lock and *afterwards* asks [`Object::still_has`].
//! - **Evict** ([`Home`]): own the entry, hide the page, check that it is not mapped, and freeze
//!   the page's references if they are the entry's and the evicter's: then no mapping is left, no
//!   lookup can succeed, and the dirty flag is final.
//! - **Back from a page**: a page's identity is the address of its entry, and leaves are
//!   aligned to their size. Under the page's PV lock the identity is true: a task that takes a page
//!   out changes it under that lock before the entry may go. The task that then owns the entry
//!   keeps the object, since its end must own all entries.
//!
//! No task waits for an entry while it holds the lock of a slot or a PV lock: its
//! owner may need them.

mod attachment;
mod bytes;
mod charge;
mod entry;
mod fill;
mod handle;
mod home;
mod leaf;
mod life;
mod page;
mod ranges;
mod swapped;
mod tree;
mod truncate;
mod write_back;

pub use attachment::{Attached, Attachment};
pub use handle::ObjectRef;
pub use home::Home;
pub(crate) use home::entry_of;
pub use page::{PageRef, Pattern};
pub(crate) use truncate::in_page;

use crate::error::{Error, Resource};
use crate::heap::try_box;
use crate::lock::ResizeLock;
use crate::system::{Gate, System};
use crate::vm::Vm;
use alloc::sync::Arc;
use core::ops::Range;
use core::ptr::NonNull;
use entry::Value;
use life::Life;
use machine::{
    Atomic, Atomics, Frame, Memory, Ordering, PAGE_SHIFT, PAGE_SIZE, PagerError, Platform,
    Topology, Truncate,
};
use sync::Padded;
use tree::Tree;

/// A swap space, as far as an object needs it to bring pages back.
pub trait Slots<M: Memory>: Send + Sync + 'static {
    /// Fills `frame`, which is the caller's alone, with the content of `slot`. May block.
    ///
    /// # Safety
    /// As for [`machine::Pager::read`].
    unsafe fn read(&self, machine: &M, slot: u32, frame: Frame) -> Result<(), PagerError>;

    /// Frees `slot`.
    ///
    /// # Safety
    /// The slot is the caller's, and nothing else refers to it any more.
    unsafe fn free(&self, slot: u32);
}

/// The largest size of an object: the reach of a signed 64-bit offset.
pub const MAX_SIZE: u64 = i64::MAX as u64;

/// The number of whole pages of the largest object.
const MAX_PAGES: u64 = MAX_SIZE >> PAGE_SHIFT;

/// A memory object. Made and kept by [`ObjectRef`]s.
///
/// The first fields are written when the size or the height of the tree changes, or never.
#[repr(C)]
pub struct Object<S: System> {
    vm: Arc<Vm<S>>,
    backing: Backing<S::Machine>,
    /// True if its size is charged to the account of swap space.
    committed: bool,
    /// The gate's data of the object.
    gate: <S::Gate as Gate<S::Machine>>::Object,
    tree: Tree<S::Machine>,
    /// Bytes. Written under `resize`.
    size: <S::Machine as Atomics>::AtomicU64,
    /// 1 while the store is still to be cut off ([`Resize::cut`]). Written under `resize`.
    is_cut_due: <S::Machine as Atomics>::AtomicU32,
    life: Life<S>,
    resize: Padded<ResizeLock<S::Machine, Resize>>,
}

/// The identity of an object, unique among the objects that exist at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(usize);

impl ObjectId {
    /// The identity as a number.
    pub fn number(self) -> u64 {
        self.0 as u64
    }
}

/// The place of an object's content that is not in memory.
enum Backing<M: Platform> {
    Store(Arc<dyn Truncate<M>>),
    Anonymous(Elsewhere<M>),
}

/// The place of anonymous memory that is not in memory.
enum Elsewhere<M: Platform> {
    /// None: all of it stays in memory.
    Nowhere,
    /// The VM's swap space, if it has one.
    SwapSpace,
    /// Slots given by the object's maker.
    Slots(Arc<dyn Slots<M>>),
}

/// The data, other than the size, that the lock of the size protects.
#[derive(Default)]
struct Resize {
    /// The size to which the store is still to be cut: the object was once this small.
    cut: Option<u64>,
}

impl<S: System> Object<S> {
    /// An object with the memory of a file of `size` bytes in `store`.
    pub fn file(
        vm: &Arc<Vm<S>>,
        store: Arc<dyn Truncate<S::Machine>>,
        size: u64,
    ) -> Result<ObjectRef<S>, Error> {
        Self::make(vm, Backing::Store(store), size, false)
    }

    /// Shared memory of `size` bytes, zero at first, which stays in memory.
    /// [`Vm::shared_memory`] makes memory that goes to the swap space.
    pub fn anonymous(vm: &Arc<Vm<S>>, size: u64) -> Result<ObjectRef<S>, Error> {
        Self::make(vm, Backing::Anonymous(Elsewhere::Nowhere), size, false)
    }

    /// Shared memory of `size` bytes, zero at first, whose pages go to these slots
    /// ([`Home::swap_out`]).
    ///
    /// # Safety
    /// The slots that pages of the object are swapped out to are of `slots`, and the object's
    /// alone. The VM's reclaimer gives it slots of the VM's swap space.
    pub unsafe fn with_slots(
        vm: &Arc<Vm<S>>,
        slots: Arc<dyn Slots<S::Machine>>,
        size: u64,
    ) -> Result<ObjectRef<S>, Error> {
        Self::make(vm, Backing::Anonymous(Elsewhere::Slots(slots)), size, false)
    }

    fn make(
        vm: &Arc<Vm<S>>,
        backing: Backing<S::Machine>,
        size: u64,
        committed: bool,
    ) -> Result<ObjectRef<S>, Error> {
        check_size(size)?;
        let mut object = try_box(Object {
            vm: vm.clone(),
            backing,
            committed: false,
            gate: vm.gate().new_object(),
            tree: Tree::new(),
            size: <S::Machine as Atomics>::AtomicU64::new(size),
            is_cut_due: <S::Machine as Atomics>::AtomicU32::new(0),
            life: Life::new(vm.machine().cpus())?,
            resize: Padded(ResizeLock::<S::Machine, _>::new(Resize::default())),
        })?;
        if committed {
            vm.commit(charge::pages(size))?;
            object.committed = true;
        }
        S::Machine::label_value(&*object, "Object");
        object.life.label();
        S::Machine::label_value(&object.resize, "Object.resize");
        Ok(ObjectRef::first(object))
    }

    /// The VM whose pages the object has.
    pub fn vm(&self) -> &Arc<Vm<S>> {
        &self.vm
    }

    /// The size in bytes, as of a moment ago.
    pub fn size(&self) -> u64 {
        // Acquire: pairs with the release of each change; bytes it grew by are zero.
        self.size.load(Ordering::Acquire)
    }

    /// The gate's data of the object.
    pub(crate) fn gate(&self) -> &<S::Gate as Gate<S::Machine>>::Object {
        &self.gate
    }

    /// The object's identity.
    pub fn id(&self) -> ObjectId {
        ObjectId(core::ptr::from_ref(self).addr())
    }

    /// Returns true if it is shared anonymous memory.
    pub fn is_anonymous(&self) -> bool {
        matches!(self.backing, Backing::Anonymous(_))
    }

    /// The number of pages, the last perhaps in part.
    pub(crate) fn pages(&self) -> u64 {
        self.size().div_ceil(PAGE_SIZE as u64)
    }

    /// The frame at `index`, if it is in memory, as of a moment ago: a hint, unless the
    /// caller has retained it before it asks [`Object::still_has`].
    pub fn resident(&self, index: u64) -> Option<Frame> {
        self.tree.find(index)?.value().frame()
    }

    /// Returns true if `frame` is (still) the object's page at `index`. See the protocol for when a
    /// fault must ask.
    pub fn still_has(&self, index: u64, frame: Frame) -> bool {
        self.resident(index) == Some(frame)
    }

    /// The number of pages that were in memory a moment ago. O(leaves).
    pub fn resident_pages(&self) -> usize {
        let values = self.tree.entries(0..u64::MAX).map(|(_, e)| e.value());
        values.filter_map(Value::frame).count()
    }

    /// The first page of `range` with content of its own, in memory or in swap space: the others
    /// are zero, unless a store has them. As of a moment ago. O(leaves).
    pub fn next_present(&self, range: Range<u64>) -> Option<u64> {
        let mut entries = self.tree.entries(range);
        entries
            .find(|(_, e)| e.value() != Value::Absent)
            .map(|(index, _)| index)
    }

    /// The number of pages that had content of their own a moment ago. O(leaves).
    pub fn present_pages(&self) -> u64 {
        let values = self.tree.entries(0..u64::MAX).map(|(_, e)| e.value());
        values.filter(|value| *value != Value::Absent).count() as u64
    }

    /// The pointer to the object that leaves keep.
    fn erased(&self) -> NonNull<()> {
        NonNull::from(self).cast()
    }
}

impl<S: System> Drop for Object<S> {
    /// Writes out the dirty pages, and frees all pages.
    fn drop(&mut self) {
        // No space maps it any more, and no task has its locks, so none is waited for, whatever the
        // caller holds. Failed writes are lost: a caller that must know writes back before.
        if let Some(mut resize) = self.resize.try_lock() {
            let _ = self.settle(&mut resize);
        }
        let _ = self.write_dirty(0..u64::MAX, |_| false);
        for (_, entry) in self.tree.entries(0..u64::MAX) {
            self.take_away(entry, &mut |_| {});
        }
        self.uncharge(self.size(), 0);
    }
}

/// Fails if an object may not be this large.
fn check_size(size: u64) -> Result<(), Error> {
    if size > MAX_SIZE {
        let reason = "an object is smaller than 2^63 bytes";
        return Err(Error::Invalid { reason });
    }
    Ok(())
}

const HEAP: Error = Error::OutOfMemory(Resource::Heap);
