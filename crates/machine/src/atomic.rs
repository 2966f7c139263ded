//! Shared memory: atomics and plain cells as families on the machine.

use core::sync::atomic::Ordering;

/// The machine's shared-memory types.
///
/// On hosted threads and on metal they are the `core` types and compile to the
/// same instructions; on the simulator and the checker each access is seen.
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
    /// Plain shared data, guarded by a protocol of its user.
    type Cell<T: Send>: SharedCell<T>;

    /// A fence, as [`core::sync::atomic::fence`].
    fn fence(order: Ordering);

    /// Says that the `bytes` at `address` are `what` (`"Type.field"`), for machines that
    /// account for each cache line by name. Of labels that overlap the smallest counts;
    /// a later one replaces an earlier one of the same place.
    #[inline(always)]
    fn label(address: *const (), bytes: usize, what: &'static str) {
        let _ = (address, bytes, what);
    }

    /// As [`Atomics::label`], for where `value` stands.
    #[inline(always)]
    fn label_value<T: ?Sized>(value: &T, what: &'static str) {
        Self::label(core::ptr::from_ref(value).cast(), size_of_val(value), what);
    }

    /// A number to hash `address` by. On a machine that repeats its runs it is the same
    /// in each of them, wherever the host has put the machine.
    #[inline(always)]
    fn key(address: usize) -> usize {
        address
    }
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
    /// As [`Atomic::compare_exchange`], but may fail for no reason.
    fn compare_exchange_weak(
        &self,
        current: T,
        new: T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<T, T>;
    /// Stores `value`, then a sequentially consistent fence.
    ///
    /// Nothing that follows in program order is performed before the store is
    /// visible to all CPUs. It pairs with a `fence(SeqCst)` or another `publish`
    /// on the other side (Dekker's pattern). One `xchg` on x86-64.
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
/// The operations on both words are sequentially consistent read-modify-writes (as
/// `lock cmpxchg16b` is), [`AtomicPair::load`] among them: they want the line for
/// themselves. A single word is read and written as any 8-byte atomic is, so that a
/// walk along a list of pairs shares the lines it reads.
pub trait AtomicPair: Send + Sync {
    /// A pair that holds `value`.
    fn new(value: [u64; 2]) -> Self;
    /// Reads both words at one instant; sees the last value.
    fn load(&self) -> [u64; 2];
    /// Reads word `index`, 0 or 1.
    fn load_word(&self, index: usize, order: Ordering) -> u64;
    /// Writes word `index`, 0 or 1; the other word stays.
    fn store_word(&self, index: usize, value: u64, order: Ordering);
    /// Writes `new` if the pair is `current`; returns the old pair either way.
    fn compare_exchange(&self, current: [u64; 2], new: [u64; 2]) -> Result<[u64; 2], [u64; 2]>;
}

/// A value that can stand in a `static`: zero, or the null pointer.
///
/// Only machines whose atomics have constants implement it; it is what
/// `lock_api::RawMutex::INIT` needs.
pub trait ConstInit: Sized {
    /// Zero or null.
    #[allow(clippy::declare_interior_mutable_const)]
    const ZERO: Self;
}

/// Plain data shared between CPUs under a protocol of its user (a lock, an
/// epoch, an owner).
///
/// The machine is told of each access, so that a simulator charges the lines
/// and a checker finds races. Neither method is unsafe: using the pointer is.
/// A pointer from [`SharedCell::read`] may be read, one from
/// [`SharedCell::write`] read and written, until the protocol gives the data away.
pub trait SharedCell<T>: Send + Sync {
    /// A cell that holds `value`.
    fn new(value: T) -> Self;
    /// Announces a read of the whole value, now.
    fn read(&self) -> *const T;
    /// Announces a write of the whole value, now.
    fn write(&self) -> *mut T;
    /// Takes the value out.
    fn into_inner(self) -> T;
}
