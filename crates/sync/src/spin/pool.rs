//! Nodes of queue locks, a few for each task.
//!
//! A task's unused nodes form a list in one of its words, so an acquisition takes one and a release
//! returns one without touching shared memory. A task has as many nodes as it ever held or awaited
//! locks at the same time; they are freed when it ends.
//!
//! Tasks that do not own a node may still read nodes of some kinds ([`Node::PEEKED`]). Their memory
//! stays a node for as long as the machine lives: a task that ends leaves them in the machine's
//! stock, where the next task without a node looks first.

use super::exit::give_up_at_exit;
use alloc::boxed::Box;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use machine::{Atomic, Locals, Machine, Ordering};

/// A node that the pool manages.
pub(crate) trait Node: Default + 'static {
    /// The task-local word with the list.
    const WORD: usize;
    /// True if tasks that do not own a node may read its atomics.
    const PEEKED: bool;
}

/// A node with the pool's link, on cache lines of its own, since its owner spins on it.
#[repr(C, align(128))]
pub(crate) struct Slot<N> {
    pub(crate) node: N,
    /// The next unused node. Only the slot's owner touches it.
    link: Cell<*mut Slot<N>>,
}

/// Takes a node; the caller owns it.
#[inline]
pub(crate) fn take<M: Machine, N: Node>() -> NonNull<Slot<N>> {
    M::with_locals(|locals| {
        let word = &locals.words[N::WORD];
        match NonNull::new(ptr::with_exposed_provenance_mut::<Slot<N>>(word.get())) {
            Some(slot) => {
                // SAFETY: slots in the list are allocated, and the list's task owns them.
                let link = unsafe { slot.as_ref() }.link.get();
                word.set(link.expose_provenance());
                slot
            }
            None => refill::<M, N>(locals),
        }
    })
}

/// Puts a node into the calling task's pool, whichever task it came from.
///
/// # Safety
/// The caller owns the node, and hands it over.
#[inline]
pub(crate) unsafe fn give<M: Machine, N: Node>(slot: NonNull<Slot<N>>) {
    M::with_locals(|locals| {
        let word = &locals.words[N::WORD];
        if word.get() == 0 {
            give_up_at_exit::<M>(locals);
        }
        // SAFETY: the caller owned the node and has given it to this call.
        let link = unsafe { &slot.as_ref().link };
        link.set(ptr::with_exposed_provenance_mut(word.get()));
        word.set(slot.as_ptr().expose_provenance());
    });
}

/// A node for a task without unused ones.
#[cold]
fn refill<M: Machine, N: Node>(locals: &Locals) -> NonNull<Slot<N>> {
    give_up_at_exit::<M>(locals);
    if N::PEEKED
        && let Some(slot) = Stock::<M, N>::of_machine().take_all()
    {
        // SAFETY: the whole list has moved from the stock to this task.
        let rest = unsafe { slot.as_ref() }.link.get();
        locals.words[N::WORD].set(rest.expose_provenance());
        return slot;
    }
    NonNull::from(Box::leak(Box::new(Slot {
        node: N::default(),
        link: Cell::new(ptr::null_mut()),
    })))
}

/// Frees the nodes of a task that ends.
pub(crate) fn drain<M: Machine, N: Node>(locals: &Locals) {
    let first = locals.words[N::WORD].replace(0);
    let first = ptr::with_exposed_provenance_mut::<Slot<N>>(first);
    match NonNull::new(first) {
        None => {}
        Some(first) if N::PEEKED => Stock::<M, N>::of_machine().put(first),
        // SAFETY: the list was the task's, and no other task reads nodes of this kind.
        Some(_) => unsafe { free(first) },
    }
}

/// Puts a peeked node into the machine's stock.
///
/// # Safety
/// The caller owns the node, and hands it over.
pub(crate) unsafe fn discard<M: Machine, N: Node>(slot: NonNull<Slot<N>>) {
    // SAFETY: the caller owned the node and has given it to this call.
    unsafe { slot.as_ref() }.link.set(ptr::null_mut());
    Stock::<M, N>::of_machine().put(slot);
}

/// Frees a list.
///
/// # Safety
/// Only the caller accesses the slots.
unsafe fn free<N>(mut slot: *mut Slot<N>) {
    while !slot.is_null() {
        // SAFETY: the caller hands over the slots, and each comes from a box.
        slot = unsafe { Box::from_raw(slot) }.link.get();
    }
}

/// The machine's unused nodes. A task takes all at once, so there is no ABA.
struct Stock<M: Machine, N> {
    head: M::AtomicPtr,
    owns: PhantomData<fn() -> N>,
}

impl<M: Machine, N: Node> Stock<M, N> {
    fn of_machine() -> &'static Self {
        M::anchor().get_or_init(|| Stock {
            head: M::AtomicPtr::new(ptr::null_mut()),
            owns: PhantomData,
        })
    }

    /// Adds the caller's list.
    fn put(&self, first: NonNull<Slot<N>>) {
        let mut last = first;
        // SAFETY: the list belongs to the caller until the exchange below.
        while let Some(next) = NonNull::new(unsafe { last.as_ref() }.link.get()) {
            last = next;
        }
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the list belongs to the caller until the exchange below.
            unsafe { last.as_ref() }.link.set(head.cast());
            // Release: pairs with the acquire in `take_all`, for the links.
            match self.head.compare_exchange_weak(
                head,
                first.as_ptr().cast(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(newer) => head = newer,
            }
        }
    }

    fn take_all(&self) -> Option<NonNull<Slot<N>>> {
        if self.head.load(Ordering::Relaxed).is_null() {
            return None;
        }
        // Acquire: pairs with the release in `put`, and through it with all earlier ones.
        let head = self.head.swap(ptr::null_mut(), Ordering::Acquire);
        NonNull::new(head.cast())
    }
}

impl<M: Machine, N> Drop for Stock<M, N> {
    fn drop(&mut self) {
        // SAFETY: the machine is gone, so no task is left that could read the nodes.
        unsafe { free(self.head.load(Ordering::Acquire).cast::<Slot<N>>()) };
    }
}
