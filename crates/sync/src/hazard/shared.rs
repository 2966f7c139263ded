//! Pointers that own their object, and references that protect it: safe as they are.

use super::{Domain, Section, Slot};
use crate::deferred::Deferred;
use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::{NonNull, null_mut};
use machine::{Atomic, Machine, Ordering};

/// A pointer to an object that it owns, or to nothing. 16 bytes.
///
/// Readers [`protect`](Section::protect) the object; a writer replaces it, which retires the old
/// one. Objects may have such pointers themselves. They are dropped with the object, at once: who
/// reads what such a pointer owns also protects the object that has it, as [`Protected`]'s lifetime
/// says.
pub struct Shared<M: Machine, T> {
    /// An [`Object`] made by [`Object::make`], or null. The task that exchanges it owns the old
    /// one.
    pointer: M::AtomicPtr,
    /// The domain in which objects are retired.
    domain: u64,
    owns: PhantomData<Box<T>>,
}

/// A reference to an object that stays until this is dropped; it keeps a slot.
pub struct Protected<'a, M: Machine, T> {
    /// Not a reference: the object may be freed while this is being dropped.
    object: NonNull<Object<M, T>>,
    _slot: Slot<'a, M>,
    refers: PhantomData<&'a T>,
}

/// An object on the heap.
#[repr(C)]
struct Object<M: Machine, T> {
    /// The first field, so that a pointer to the node is also one to the whole.
    node: Deferred<M>,
    value: T,
}

impl<M: Machine, T> Object<M, T> {
    fn make(value: Option<T>) -> *mut () {
        let node = Deferred::new();
        let make = |value| Box::into_raw(Box::new(Object::<M, T> { node, value })).cast();
        value.map_or(null_mut(), make)
    }

    /// # Safety
    /// `object` comes from [`Object::make`] with the same types, is not null, and the caller hands
    /// it over.
    unsafe fn value(object: *mut ()) -> T {
        // SAFETY: so says the caller.
        unsafe { Box::from_raw(object.cast::<Self>()) }.value
    }

    /// # Safety
    /// As for [`Object::value`].
    unsafe fn run(node: *mut Deferred<M>) {
        // SAFETY: so says the caller.
        drop(unsafe { Self::value(node.cast()) });
    }
}

// SAFETY: a shared pointer gives out references to `T`, and moves values of `T` to the CPU that
// drops them.
unsafe impl<M: Machine, T: Send + Sync> Send for Shared<M, T> {}
// SAFETY: as above.
unsafe impl<M: Machine, T: Send + Sync> Sync for Shared<M, T> {}

impl<M: Machine, T: Send + Sync + 'static> Shared<M, T> {
    /// A pointer whose objects are retired in `domain`.
    pub fn new(domain: &Domain<M>, value: Option<T>) -> Self {
        Shared {
            pointer: M::AtomicPtr::new(Object::<M, T>::make(value)),
            domain: domain.id,
            owns: PhantomData,
        }
    }

    /// Puts `value` in place of the object, which is retired. Returns true if there was one.
    ///
    /// # Panics
    /// If `domain` is not the pointer's, or the caller runs on no CPU of its machine.
    pub fn replace(&self, domain: &Domain<M>, value: Option<T>) -> bool {
        self.assert_of(domain);
        // Release: pairs with the second read of `Slot::protect`. Acquire: the object is retired as
        // it was linked.
        let new = Object::<M, T>::make(value);
        let old = self.pointer.swap(new, Ordering::AcqRel);
        // SAFETY: the exchange has taken the object from its one source.
        unsafe { self.retire(domain, old) };
        !old.is_null()
    }

    /// Puts `value` in place of the object if that is still `current`, and retires it; so what was
    /// made from `current` loses no change of another task.
    ///
    /// # Errors
    /// The value, if the object is another by now.
    ///
    /// # Panics
    /// If `section` is not of the pointer's domain.
    pub fn replace_if(
        &self,
        section: &Section<'_, M>,
        current: Option<&Protected<'_, M, T>>,
        value: Option<T>,
    ) -> Result<(), Option<T>> {
        self.assert_of(section.domain());
        let new = Object::<M, T>::make(value);
        // The address can be no other object's: `current` is protected.
        let old = current.map_or(null_mut(), Protected::address);
        // Release and acquire as in `replace`.
        let exchange = self
            .pointer
            .compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed);
        if exchange.is_err() {
            // SAFETY: no other task has seen the new object.
            return Err((!new.is_null()).then(|| unsafe { Object::<M, T>::value(new) }));
        }
        // SAFETY: the exchange has taken the object from its one source.
        unsafe { self.retire(section.domain(), old) };
        Ok(())
    }

    /// # Safety
    /// `object` was this pointer's, the caller has exchanged it, and hands it over.
    unsafe fn retire(&self, domain: &Domain<M>, object: *mut ()) {
        if !object.is_null() {
            // SAFETY: the object is unlinked and the caller's; `T` may be dropped on any CPU.
            unsafe { domain.retire(object.cast(), Object::<M, T>::run) };
        }
    }
}

impl<M: Machine, T> Shared<M, T> {
    fn assert_of(&self, domain: &Domain<M>) {
        assert!(self.domain == domain.id, "hazard: another domain's pointer");
    }
}

impl<M: Machine> Section<'_, M> {
    /// Protects the object to which `shared` points now, if there is one.
    ///
    /// # Panics
    /// If `shared` is another domain's, or the CPU's [`super::SLOTS`] are all in use.
    #[inline]
    pub fn protect<'a, T>(&'a self, shared: &'a Shared<M, T>) -> Option<Protected<'a, M, T>> {
        shared.assert_of(self.domain());
        let mut slot = self.slot();
        let object = slot.protect(&shared.pointer).cast::<Object<M, T>>();
        Some(Protected {
            object: NonNull::new(object)?,
            _slot: slot,
            refers: PhantomData,
        })
    }
}

impl<M: Machine, T> Protected<'_, M, T> {
    fn address(&self) -> *mut () {
        self.object.as_ptr().cast()
    }
}

impl<M: Machine, T> Deref for Protected<'_, M, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the pointer's objects are retired in the slot's domain once they are exchanged,
        // and never linked again; so the object stays while the slot names it, which is as long as
        // this lives. The pointer itself is not dropped meanwhile, as this borrows it; the borrow
        // may come from an object that is protected as long.
        unsafe { &self.object.as_ref().value }
    }
}

impl<M: Machine, T> Drop for Shared<M, T> {
    fn drop(&mut self) {
        // Relaxed: the caller has the pointer exclusively.
        let object = self.pointer.load(Ordering::Relaxed);
        if !object.is_null() {
            // SAFETY: the object has no other source, and no `Protected` of it is left: they borrow
            // the pointer.
            drop(unsafe { Object::<M, T>::value(object) });
        }
    }
}
