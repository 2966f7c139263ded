//! Retiring objects, and dropping those that no slot names.

use super::{Domain, SLOTS};
use crate::deferred::{Deferred, List};
use alloc::boxed::Box;
use machine::{Atomic, Machine, Ordering, SharedCell};

/// One CPU's retired objects.
pub(super) struct Bin<M: Machine> {
    /// Only the owner accesses it, pinned, and never across a callback; or the holder of the only
    /// reference to the domain.
    list: M::Cell<List<M>>,
    /// Objects retired and not yet dropped. Written by the owner, read by anyone.
    held: M::AtomicUsize,
    /// True while the owner scans. Only the owner accesses it, pinned.
    scanning: M::Cell<bool>,
    /// Room for the addresses in all slots. Only the owner accesses it, pinned and scanning.
    named: M::Cell<Box<[usize]>>,
}

impl<M: Machine> Bin<M> {
    /// An empty bin with room for the addresses in all slots.
    pub(super) fn new(named: Box<[usize]>) -> Self {
        Bin {
            list: M::Cell::new(List::EMPTY),
            held: M::AtomicUsize::new(0),
            scanning: M::Cell::new(false),
            named: M::Cell::new(named),
        }
    }

    fn held(&self) -> usize {
        // Relaxed: the owner reads what it wrote; to others it is a number of a moment ago.
        self.held.load(Ordering::Relaxed)
    }

    fn set_held(&self, held: usize) {
        // Relaxed: nothing is read by it.
        self.held.store(held, Ordering::Relaxed);
    }
}

impl<M: Machine> Domain<M> {
    /// Runs `run(node)` once no slot names the node's address. Never waits, and allocates nothing;
    /// sections do not matter.
    ///
    /// A call that makes the CPU's list [`Domain::batch`] long scans, and runs callbacks itself:
    /// pinned, one at a time, with whatever locks the caller holds. They may protect and retire;
    /// they must not block.
    ///
    /// # Safety
    /// `node` is valid, in no list, and in an object that a slot names by the address of `node`.
    /// The object is unlinked from the one source at which [`Slot::protect`](super::Slot::protect)
    /// finds it, and is not linked again. Until `run` is called the object stays valid and in
    /// place, and `node` is not touched. `run` may be called on any CPU.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the domain's machine.
    pub unsafe fn retire(&self, node: *mut Deferred<M>, run: unsafe fn(*mut Deferred<M>)) {
        let pin = M::pin();
        let bin = self.bins.get(&pin);
        // SAFETY: pinned, so no other CPU accesses the list, and no reference to it is left across
        // a callback; the caller hands over a valid node that may move to any CPU.
        unsafe { (*bin.list.write()).push(node, run) };
        bin.set_held(bin.held() + 1);
        if bin.held() >= self.batch() {
            self.reduce(&pin, bin);
        }
    }

    /// Drops what this CPU has retired and no slot names. Nothing in a callback.
    ///
    /// An idle loop or a timer calls this, so that objects do not linger on a CPU that retires no
    /// more.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the domain's machine.
    pub fn settle(&self) {
        let pin = M::pin();
        self.scan(&pin, self.bins.get(&pin));
    }

    /// Objects that the CPU with this index has retired and not yet dropped, a moment ago.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn pending(&self, index: usize) -> usize {
        self.bins.of(index).held()
    }

    /// Scans until fewer than a batch are held. What callbacks retire is scanned here too.
    #[cold]
    #[inline(never)]
    fn reduce(&self, pin: &M::Pin, bin: &Bin<M>) {
        while bin.held() >= self.batch() && self.scan(pin, bin) {}
    }

    /// Drops what no slot names. Returns false if the CPU is scanning already.
    fn scan(&self, _pin: &M::Pin, bin: &Bin<M>) -> bool {
        let scanning = bin.scanning.write();
        // SAFETY: pinned, so no other CPU accesses `scanning`, nor `list`.
        let list = unsafe {
            if core::mem::replace(&mut *scanning, true) {
                return false;
            }
            (*bin.list.write()).take()
        };
        let mut scan = Scan {
            bin,
            list,
            kept: List::EMPTY,
            ran: 0,
        };
        if !scan.list.is_empty() {
            // Pairs with the light fence of `Slot::protect`: a reader whose slot is not seen below
            // sees that the list's objects were unlinked.
            M::heavy_fence();
            // SAFETY: pinned and scanning, so nothing else accesses `named`.
            let named = self.named(unsafe { &mut *bin.named.write() });
            scan.run(named);
        }
        true
    }

    /// The addresses in all slots, ascending.
    fn named<'a>(&self, room: &'a mut [usize]) -> &'a [usize] {
        let mut count = 0;
        for record in self.records.iter() {
            for slot in &record.slots {
                // Acquire: pairs with the release of the reader's stores, so that its use of an
                // object that it has let go of happens before the drop.
                let object = slot.load(Ordering::Acquire);
                if !object.is_null() {
                    room[count] = object.addr();
                    count += 1;
                }
            }
        }
        let named = &mut room[..count];
        named.sort_unstable();
        named
    }
}

impl<M: Machine> Drop for Domain<M> {
    fn drop(&mut self) {
        for bin in self.bins.iter() {
            // SAFETY: the domain is exclusive, and no reference is left across a callback.
            while let Some((node, link)) = unsafe { (*bin.list.write()).pop() } {
                // SAFETY: the caller of `retire` promised that `run` may be called on the node
                // once, on any CPU; no section is left that could have a slot.
                unsafe { (link.run)(node) };
            }
        }
    }
}

/// A scan; puts what is left back if a callback panics.
struct Scan<'a, M: Machine> {
    bin: &'a Bin<M>,
    /// Objects not yet looked at.
    list: List<M>,
    /// Objects that a slot names.
    kept: List<M>,
    ran: usize,
}

impl<M: Machine> Scan<'_, M> {
    /// Runs the callbacks of all objects that are not `named`, which is ascending.
    fn run(&mut self, named: &[usize]) {
        while let Some((node, link)) = self.list.pop() {
            if named.binary_search(&node.addr()).is_ok() {
                // SAFETY: the node was in this scan's list, and is in none now.
                unsafe { self.kept.push(node, link.run) };
                continue;
            }
            self.ran += 1;
            // SAFETY: the caller of `retire` promised that `run` may be called on the node
            // once, on any CPU, when no slot names it.
            unsafe { (link.run)(node) };
        }
    }
}

impl<M: Machine> Drop for Scan<'_, M> {
    fn drop(&mut self) {
        let (list, scanning) = (self.bin.list.write(), self.bin.scanning.write());
        // SAFETY: the caller of the scan is pinned, so no other CPU accesses these, and no callback
        // runs.
        unsafe {
            (*list).append(&mut self.kept);
            (*list).append(&mut self.list);
            *scanning = false;
        }
        self.bin.set_held(self.bin.held() - self.ran);
    }
}

const _: () = assert!(SLOTS <= u32::BITS as usize);
