//! A counter with a limit that CPUs do not share in the common case.
//!
//! What seed 000 finds at the end of its road: once munmap scales, the one counter of
//! reserved swap is the bottleneck.
//!
//! # Protocol
//! Of `limit` units, some are reserved; the free ones lie in a common pool and in
//! stocks, one a CPU. Only the pool's lock lets units move between pool and stocks.
//!
//! - **reserve** takes from the CPU's own stock by compare-and-swap if that has
//!   enough and is not *closed*.
//! - **release** adds to the CPU's own stock likewise, closed or not, if that stays
//!   within its cap.
//! - A counter that begins above its limit ([`Limited::try_with_used`]) owes units to its pool,
//!   and has stocks of nothing: all is under the lock.
//! - What does not fit takes the lock. A release adds to the pool, and takes half of
//!   its full stock there, too. A reservation takes from the pool (and some more for the stock); if the
//!   pool is short it *closes and empties* one stock after the other; if all
//!   are closed and it is still short, it empties all once more; if even that is
//!   short, it refuses. What was gathered goes to the pool, stocks are opened.
//!
//! # Why it is exact
//! It is linearizable: each call takes effect at one instant between its start and
//! its end, and in the order of these instants a plain counter would have given the same answers:
//! `reserve(n)` says yes exactly if `n` units are free at its instant, and all `n`
//! of a release are free from its instant on.
//!
//! - Fast paths take effect at their compare-and-swap, slow releases at the addition to
//!   the pool, granted slow reservations when they have gathered enough under the lock. Each unit is in one
//!   place at a time, so none is granted twice: never more than `limit`
//!   are reserved.
//! - A refusal takes effect at the instant `T` at which the last stock is closed. Until
//!   stocks are opened all reservations wait for the lock, as do releases that
//!   do not fit; stocks can only grow, by fast releases. The second round finds in each
//!   stock at least what it held at `T`, so what was gathered in all is at least what
//!   was free at `T`; it was less than `n`, so fewer than `n` were free at `T`.
//!   (One round is not enough: a stock emptied first may be filled by a release while
//!   an equal number is reserved from one emptied later; the sum misses units though
//!   some were free all the time.)
//!
//! "Order of instants" on weakly ordered CPUs: all accesses to a stock are
//! acquire-release read-modify-writes, so what happens before a reservation that a closing
//! found done is seen by the second round.

use crate::{Padded, PerCpu};
use alloc::collections::TryReserveError;
use machine::{Atomic, AtomicInt, CpuRange, Machine, Ordering, SharedCell};

/// A number of units, at most a limit, reserved and released on many CPUs.
///
/// 128 bytes a CPU and 256 more. If a CPU's reservations and releases balance within its
/// stock, each is one compare-and-swap on the CPU's own line; otherwise a
/// lock, and near the limit one line a CPU. A refusal disturbs all CPUs for the
/// moment it takes; where refusals are common, the limit is the problem.
pub struct Limited<M: Machine, const ROUNDS: usize = 2> {
    limit: u64,
    /// The most a stock holds.
    cap: u64,
    /// Free units of the CPU, and [`CLOSED`]. Taken from by reservations of the CPU
    /// and, under the lock, by anybody; added to by the CPU, and by anybody under the lock.
    stocks: PerCpu<M::AtomicU64, M>,
    /// 1 while somebody is at `pool`. Taken with the CPU pinned.
    lock: Padded<M::AtomicU32>,
    /// Free units in no stock; negative as long as more is used than the limit. Guarded by
    /// `lock`.
    pool: Padded<M::Cell<i64>>,
}

/// In a stock: no reservations but under the lock.
const CLOSED: u64 = 1 << 63;

impl<M: Machine> Limited<M> {
    /// A counter at 0 with a limit (below 2^63, or taken for that). Stocks hold at most half of the limit
    /// in all.
    pub fn new(cpus: CpuRange, limit: u64) -> Self {
        Self::with_stock(cpus, limit, limit / (2 * cpus.len() as u64))
    }

    /// A counter whose stocks hold at most `cap` units each; with 0 all is under one lock.
    pub fn with_stock(cpus: CpuRange, limit: u64, cap: u64) -> Self {
        Self::with_rounds(cpus, limit, cap)
    }

    /// A counter at `used`, which may be above the limit: then nothing is granted until so
    /// much is released that it fits, and every call takes the lock. Both below 2^62.
    pub fn try_with_used(cpus: CpuRange, limit: u64, used: u64) -> Result<Self, TryReserveError> {
        let most = (CLOSED >> 1) - 1;
        let (limit, used) = (limit.min(most), used.min(most));
        let cap = match used <= limit {
            true => limit / (2 * cpus.len() as u64),
            false => 0,
        };
        let stocks = PerCpu::try_new(cpus, |_| M::AtomicU64::new(0))?;
        let counter = Self::of(stocks, limit, cap);
        // SAFETY: nobody else knows the counter.
        unsafe { *counter.pool.write() -= used as i64 };
        Ok(counter)
    }
}

impl<M: Machine, const ROUNDS: usize> Limited<M, ROUNDS> {
    /// A counter that empties stocks `ROUNDS` times before it refuses; 2 is right.
    #[doc(hidden)]
    pub fn with_rounds(cpus: CpuRange, limit: u64, cap: u64) -> Self {
        let stocks = PerCpu::new(cpus, |_| M::AtomicU64::new(0));
        Self::of(stocks, limit, cap)
    }

    /// A counter at 0 with these stocks, which are empty.
    fn of(stocks: PerCpu<M::AtomicU64, M>, limit: u64, cap: u64) -> Self {
        let limit = limit.min(CLOSED - 1);
        stocks.label("Limited.stock");
        Limited {
            limit,
            cap: cap.min(limit),
            stocks,
            lock: Padded(M::AtomicU32::new(0)),
            pool: Padded(M::Cell::new(limit as i64)),
        }
    }

    /// Reserves `n` units, or none if fewer are free.
    ///
    /// What happened before their release happens before the return.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the counter's machine.
    #[inline]
    pub fn reserve(&self, n: u64) -> bool {
        let pin = M::pin();
        let stock = self.stocks.get(&pin);
        let mut free = stock.load(Ordering::Relaxed);
        // A closed stock is above any limit.
        while n <= free && free < CLOSED {
            // Acquire and release: module docs.
            match stock.compare_exchange_weak(free, free - n, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => free = now,
            }
        }
        self.reserve_slow(&pin, n)
    }

    /// Releases `n` units, on any CPU, whole or in parts.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the counter's machine; if more is released
    /// than is reserved, where that is seen (at the pool).
    #[inline]
    pub fn release(&self, n: u64) {
        let pin = M::pin();
        let stock = self.stocks.get(&pin);
        let mut free = stock.load(Ordering::Relaxed);
        while n <= self.cap && (free & !CLOSED) <= self.cap - n {
            // Acquire and release: module docs.
            match stock.compare_exchange_weak(free, free + n, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => free = now,
            }
        }
        self.release_slow(&pin, n);
    }

    /// Units reserved; exact while nobody reserves or releases.
    pub fn used(&self) -> u64 {
        let pin = M::pin();
        self.with_pool(&pin, |pool| {
            let stock = |s: &M::AtomicU64| (s.load(Ordering::Acquire) & !CLOSED) as i64;
            let free = self
                .stocks
                .iter()
                .map(stock)
                .fold(*pool, i64::saturating_add);
            (self.limit as i64).saturating_sub(free).max(0) as u64
        })
    }

    /// The limit.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    #[cold]
    #[inline(never)]
    fn reserve_slow(&self, pin: &M::Pin, n: u64) -> bool {
        if n > self.limit {
            return false;
        }
        let n = n as i64;
        self.with_pool(pin, |pool| {
            if *pool < n {
                self.gather(pool, n);
            }
            let granted = *pool >= n;
            if granted {
                *pool -= n;
                self.refill(pin, pool);
            }
            granted
        })
    }

    /// Brings free units from the stocks to the pool, until it has `n`.
    fn gather(&self, pool: &mut i64, n: i64) {
        // The second round is what makes a refusal exact.
        for stock in (0..ROUNDS).flat_map(|_| self.stocks.iter()) {
            *pool += (stock.swap(CLOSED, Ordering::AcqRel) & !CLOSED) as i64;
            if *pool >= n {
                break;
            }
        }
        for stock in self.stocks.iter() {
            stock.fetch_and(!CLOSED, Ordering::AcqRel);
        }
    }

    /// Fills this CPU's stock to half its cap, with no more than a CPU's share of
    /// the pool.
    fn refill(&self, pin: &M::Pin, pool: &mut i64) {
        let stock = self.stocks.get(pin);
        // Relaxed: only this CPU and the lock's holder add, and that is the caller.
        let missing = (self.cap / 2).saturating_sub(stock.load(Ordering::Relaxed));
        let share = missing.min(*pool as u64 / self.stocks.cpus().len() as u64);
        if share > 0 {
            *pool -= share as i64;
            stock.fetch_add(share, Ordering::AcqRel);
        }
    }

    #[cold]
    #[inline(never)]
    fn release_slow(&self, pin: &M::Pin, n: u64) {
        let sound = self.with_pool(pin, |pool| {
            // At once visible to all who hold the lock: the release's instant.
            *pool = pool.saturating_add_unsigned(n);
            // Half of a full stock goes back, so that the next releases are cheap.
            let stock = self.stocks.get(pin);
            let free = stock.load(Ordering::Relaxed);
            if free > self.cap / 2 {
                // The stock is open, and only reservations of this CPU and the
                // lock's holder take from it: it is what was read.
                stock.fetch_sub(free - self.cap / 2, Ordering::AcqRel);
                *pool += (free - self.cap / 2) as i64;
            }
            *pool <= self.limit as i64
        });
        assert!(sound, "counter: more released than was reserved");
    }

    /// Runs `f`, which must not panic, on the pool under the lock.
    fn with_pool<R>(&self, _pin: &M::Pin, f: impl FnOnce(&mut i64) -> R) -> R {
        M::spin_until(|| {
            // Acquire: pairs with the release below.
            self.lock
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        });
        // SAFETY: the lock excludes all others.
        let result = f(unsafe { &mut *self.pool.write() });
        // Release: pairs with the acquire above.
        self.lock.store(0, Ordering::Release);
        result
    }
}
