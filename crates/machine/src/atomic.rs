//! Shared memory: atomics and plain cells as families on the machine.

use core::sync::atomic::Ordering;

/// The machine's shared-memory types.
///
/// On hosted threads and on bare metal they are the `core` types and compile to the same
/// instructions; the simulator and the checker observe each access.
pub trait Atomics: Sized {
    /// An 8-bit atomic; 1 byte on a real machine.
    type AtomicU8: AtomicInt<u8>;
    /// A 16-bit atomic.
    type AtomicU16: AtomicInt<u16>;
    /// A 32-bit atomic.
    type AtomicU32: AtomicInt<u32>;
    /// A 64-bit atomic.
    type AtomicU64: AtomicInt<u64>;
    /// A pointer-sized atomic integer.
    type AtomicUsize: AtomicInt<usize>;
    /// An atomic untyped pointer.
    type AtomicPtr: Atomic<*mut ()>;
    /// Two 64-bit words that are compared and swapped as one.
    type AtomicPair: AtomicPair;
    /// Plain shared data, guarded by a protocol of its users.
    type Cell<T: Send>: SharedCell<T>;

    /// Executes a fence ([`core::sync::atomic::fence`]).
    fn fence(order: Ordering);

    /// The side of a pair of fences that runs often: between a `light_fence` and a
    /// [`Atomics::heavy_fence`] the order is that between two sequentially consistent fences.
    /// Between two light fences there is no order.
    ///
    /// A machine that can make all CPUs execute a fence (an interrupt, `membarrier`) executes none
    /// here. It overrides both or neither.
    #[inline(always)]
    #[track_caller]
    fn light_fence() {
        Self::fence(Ordering::SeqCst);
    }

    /// The side of a pair of fences that runs seldom, and may interrupt all CPUs
    /// ([`Atomics::light_fence`]). It is also a sequentially consistent fence for the caller.
    ///
    /// The caller may be pinned, and holds no lock that an interrupt handler acquires.
    #[inline(always)]
    #[track_caller]
    fn heavy_fence() {
        Self::fence(Ordering::SeqCst);
    }

    /// Names the `bytes` at `address` `what` (`"Type.field"`), for machines that attribute each
    /// cache line to a name. Where labels overlap, the smallest counts; a later label of the same
    /// place replaces an earlier one.
    #[inline(always)]
    fn label(address: *const (), bytes: usize, what: &'static str) {
        let _ = (address, bytes, what);
    }

    /// Labels the memory of `value` ([`Atomics::label`]).
    #[inline(always)]
    fn label_value<T: ?Sized>(value: &T, what: &'static str) {
        Self::label(core::ptr::from_ref(value).cast(), size_of_val(value), what);
    }

    /// Returns the value of `look`, for an assertion; it only reads, and only what no other CPU may
    /// be writing. A machine that cannot look without a trace, such as time or other schedules,
    /// returns true. See
    /// [`invariant!`](crate::invariant).
    #[inline(always)]
    fn inspect(look: impl FnOnce() -> bool) -> bool {
        look()
    }

    /// A number to hash `address` by. On a machine whose runs are repeatable it is the same in
    /// every run, wherever the host has placed the object.
    #[inline(always)]
    fn key(address: usize) -> usize {
        address
    }
}

/// Asserts what must hold, in builds with debug assertions; the look leaves no trace on the machine
/// ([`Atomics::inspect`]): `invariant!(M: lock.is_locked(), "message")`.
#[macro_export]
macro_rules! invariant {
    ($machine:ty: $condition:expr $(, $($message:tt)+)?) => {
        ::core::debug_assert!(
            <$machine as $crate::Atomics>::inspect(|| $condition)
            $(, $($message)+)?
        )
    };
}

/// An atomic variable that holds a `T`.
pub trait Atomic<T: Copy>: Send + Sync {
    /// A variable that holds `value`.
    fn new(value: T) -> Self;
    /// Reads the value.
    fn load(&self, order: Ordering) -> T;
    /// Writes `value`.
    fn store(&self, value: T, order: Ordering);
    /// Writes `value`, returns the old one.
    fn swap(&self, value: T, order: Ordering) -> T;
    /// Writes `new` if the value is `current`; returns the old value either way.
    fn compare_exchange(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T>;
    /// Writes `new` if the value is `current`, but may fail spuriously; returns the old value.
    fn compare_exchange_weak(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T>;
    /// Replaces the value by the result of `f`, unless that is `None`: a weak exchange that is
    /// repeated with each newer value. `Ok` has the old value, `Err` the one that `f` refused.
    /// `success` orders the exchange, `failure` the loads.
    #[inline]
    #[track_caller]
    fn fetch_update(
        &self,
        success: Ordering,
        failure: Ordering,
        mut f: impl FnMut(T) -> Option<T>,
    ) -> Result<T, T> {
        let mut seen = self.load(failure);
        while let Some(new) = f(seen) {
            match self.compare_exchange_weak(seen, new, success, failure) {
                Ok(_) => return Ok(seen),
                Err(newer) => seen = newer,
            }
        }
        Err(seen)
    }

    /// Stores `value`, then a sequentially consistent fence.
    ///
    /// Nothing that follows in program order is performed before the store is
    /// visible to all CPUs. It pairs with a `fence(SeqCst)` or another `publish`
    /// on the other side (Dekker's pattern).
    fn publish(&self, value: T);
}

/// An atomic integer.
pub trait AtomicInt<T: Copy>: Atomic<T> {
    /// Adds, wrapping; returns the old value.
    fn fetch_add(&self, value: T, order: Ordering) -> T;
    /// Subtracts, wrapping; returns the old value.
    fn fetch_sub(&self, value: T, order: Ordering) -> T;
    /// Bitwise and; returns the old value.
    fn fetch_and(&self, value: T, order: Ordering) -> T;
    /// Bitwise or; returns the old value.
    fn fetch_or(&self, value: T, order: Ordering) -> T;
}

/// Two 64-bit words at a 16-byte boundary, exchanged as one.
///
/// Operations on both words, including [`AtomicPair::load`], are sequentially consistent
/// read-modify-writes (like `lock cmpxchg16b`) and take the cache line exclusively. A single word
/// is read and written like any 8-byte atomic, so that a walk along a list of pairs only shares the
/// lines that it reads.
pub trait AtomicPair: Send + Sync {
    /// A pair that holds `value`.
    fn new(value: [u64; 2]) -> Self;
    /// Reads both words at one instant and sees their latest value.
    fn load(&self) -> [u64; 2];
    /// Reads word `index`, 0 or 1.
    fn load_word(&self, index: usize, order: Ordering) -> u64;
    /// Writes word `index`, 0 or 1; the other word does not change.
    fn store_word(&self, index: usize, value: u64, order: Ordering);
    /// Writes `new` if the pair is `current`; returns the old pair either way.
    fn compare_exchange(&self, current: [u64; 2], new: [u64; 2]) -> Result<[u64; 2], [u64; 2]>;
}

/// A value that a `static` can have: zero, or the null pointer.
///
/// Only machines whose atomics have constant constructors implement it; `lock_api::RawMutex::INIT`
/// needs it.
pub trait ConstInit: Sized {
    /// Zero or null.
    #[allow(clippy::declare_interior_mutable_const)]
    const ZERO: Self;
}

/// Plain data shared between CPUs under a protocol of its users (a lock, an epoch, an owner).
///
/// The machine learns of each access, so that a simulator charges the cache lines and a checker
/// finds races. Neither method is unsafe; using the pointer is. A pointer from [`SharedCell::read`]
/// may be read, and one from [`SharedCell::write`] read and written, for as long as the protocol
/// grants the access.
pub trait SharedCell<T>: Send + Sync {
    /// A cell that holds `value`.
    fn new(value: T) -> Self;
    /// Announces a read of the whole value, now.
    fn read(&self) -> *const T;
    /// Announces a write of the whole value, now.
    fn write(&self) -> *mut T;
    /// Takes the value out: a write that no access may come after.
    fn into_inner(self) -> T;
}
