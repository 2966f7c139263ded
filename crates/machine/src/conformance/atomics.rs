//! Atomics and cells: values and atomicity.

use super::two;
use crate::{Atomic, AtomicInt, AtomicPair, Execute, Ordering, SharedCell};
use alloc::{boxed::Box, sync::Arc};
use core::fmt::Debug;
use core::ptr::null_mut;

/// Every operation of every atomic returns and leaves the right value, and no read-modify-write of
/// two CPUs on one variable is lost.
pub fn atomics<M: Execute>(m: &M) {
    integer::<_, M::AtomicU8>([0b0101, 0b0110, 0b0100, 0b0111, u8::MAX]);
    integer::<_, M::AtomicU16>([0b0101, 0b0110, 0b0100, 0b0111, u16::MAX]);
    integer::<_, M::AtomicU32>([0b0101, 0b0110, 0b0100, 0b0111, u32::MAX]);
    integer::<_, M::AtomicU64>([0b0101, 0b0110, 0b0100, 0b0111, u64::MAX]);
    integer::<_, M::AtomicUsize>([0b0101, 0b0110, 0b0100, 0b0111, usize::MAX]);
    let mut values = [0u64; 2];
    let [a, b] = values.each_mut().map(|v| core::ptr::from_mut(v).cast());
    exchanges::<_, M::AtomicPtr>(null_mut(), a, b);
    pair::<M::AtomicPair>();
    counting(m);
}

/// `a`, `b`, `a & b`, `a | b` and the highest value.
fn integer<T: Copy + PartialEq + Debug, A: AtomicInt<T>>([a, b, and, or, top]: [T; 5]) {
    exchanges::<T, A>(a, b, top);
    let atomic = A::new(a);
    let now = || atomic.load(Ordering::Relaxed);
    assert_eq!(atomic.fetch_and(b, Ordering::Relaxed), a, "fetch_and");
    assert_eq!(now(), and, "fetch_and");
    atomic.store(a, Ordering::Relaxed);
    assert_eq!(atomic.fetch_or(b, Ordering::Relaxed), a, "fetch_or");
    assert_eq!(now(), or, "fetch_or");
    // Subtracting `a` and adding it again wraps around to the old value.
    atomic.store(and, Ordering::Relaxed);
    assert_eq!(atomic.fetch_sub(top, Ordering::Relaxed), and, "fetch_sub");
    assert_eq!(
        now(),
        a,
        "fetch_sub: subtracting the highest value adds one"
    );
    assert_eq!(atomic.fetch_add(top, Ordering::Relaxed), a, "fetch_add");
    assert_eq!(
        now(),
        and,
        "fetch_add: adding the highest value subtracts one"
    );
}

fn exchanges<T: Copy + PartialEq + Debug, A: Atomic<T>>(a: T, b: T, c: T) {
    const OK: Ordering = Ordering::AcqRel;
    const NO: Ordering = Ordering::Acquire;
    let atomic = A::new(a);
    let now = || atomic.load(Ordering::Acquire);
    assert_eq!(now(), a, "new, load");
    atomic.store(b, Ordering::Release);
    assert_eq!(now(), b, "store");
    assert_eq!(atomic.swap(c, Ordering::AcqRel), b, "swap");
    assert_eq!(now(), c, "swap");
    assert_eq!(atomic.compare_exchange(b, a, OK, NO), Err(c), "a mismatch");
    assert_eq!(now(), c, "a failed exchange writes nothing");
    assert_eq!(atomic.compare_exchange(c, a, OK, NO), Ok(c), "a match");
    assert_eq!(now(), a, "compare_exchange");
    assert_eq!(atomic.compare_exchange_weak(b, c, OK, NO), Err(a), "weak");
    while atomic.compare_exchange_weak(a, b, OK, NO).is_err() {}
    assert_eq!(now(), b, "compare_exchange_weak");
    let refused = atomic.fetch_update(OK, NO, |_| None);
    assert_eq!((refused, now()), (Err(b), b), "a refused update");
    let updated = atomic.fetch_update(OK, NO, |old| (old == b).then_some(a));
    assert_eq!((updated, now()), (Ok(b), a), "fetch_update");
    atomic.publish(c);
    assert_eq!(now(), c, "publish");
}

/// Every operation of a pair returns and leaves the right value.
pub(crate) fn pair<P: AtomicPair>() {
    let pair = P::new([1, 2]);
    assert_eq!(pair.load(), [1, 2], "new, load");
    for wrong in [[0, 2], [1, 0]] {
        assert_eq!(pair.compare_exchange(wrong, [8, 9]), Err([1, 2]));
    }
    assert_eq!(pair.load(), [1, 2], "a failed exchange writes nothing");
    let big = [u64::MAX, 1 << 63];
    assert_eq!(pair.compare_exchange([1, 2], big), Ok([1, 2]));
    assert_eq!(pair.load(), big, "compare_exchange");
}

/// How often each CPU counts.
const TIMES: u64 = 2;

fn counting<M: Execute>(m: &M) {
    struct Counts<M: Execute> {
        added: M::AtomicU64,
        exchanged: M::AtomicU64,
        pair: M::AtomicPair,
    }
    fn count<M: Execute>(counts: &Counts<M>) {
        for _ in 0..TIMES {
            counts.added.fetch_add(1, Ordering::Relaxed);
            let mut seen = counts.exchanged.load(Ordering::Relaxed);
            while let Err(now) = counts.exchanged.compare_exchange_weak(
                seen,
                seen + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                seen = now;
            }
        }
        let mut seen = counts.pair.load();
        while let Err(now) = counts.pair.compare_exchange(seen, seen.map(|n| n + 1)) {
            seen = now;
        }
    }
    let counts = Arc::new(Counts::<M> {
        added: M::AtomicU64::new(0),
        exchanged: M::AtomicU64::new(0),
        pair: M::AtomicPair::new([0, 7]),
    });
    two(m, &counts, count, count);
    let total = 2 * TIMES;
    assert_eq!(counts.added.load(Ordering::Relaxed), total, "fetch_add");
    assert_eq!(counts.exchanged.load(Ordering::Relaxed), total, "exchange");
    assert_eq!(counts.pair.load(), [2, 9], "pair");
}

/// A cell returns the value that was put in it.
pub fn cells<M: Execute>(_: &M) {
    let cell = M::Cell::<Box<u32>>::new(Box::new(1));
    // SAFETY: the cell is local to this function.
    unsafe {
        **cell.write() += 1;
        assert_eq!(**cell.read(), 2, "a write is read");
    }
    assert_eq!(*cell.into_inner(), 2, "into_inner");
}
