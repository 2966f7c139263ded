//! A counter with a limit that CPUs do not share in the common case.
//!
//! Once munmap scales, the single counter of reserved swap is the next bottleneck (case study 000).
//!
//! # Protocol
//! Of `limit` units, some are reserved; the free ones lie in a common pool and in *stocks*: a CPU's
//! stock is its own share of the free units. Only a holder of the pool's lock moves units between
//! pool and stocks.
//!
//! - **reserve** takes from the CPU's own stock by compare-and-swap if that has enough and is not
//!   *closed*.
//! - **release** adds to the CPU's own stock likewise, closed or not, if that stays within its cap.
//! - A counter that begins above its limit ([`Limited::try_with_used`]) owes units to its pool and
//!   has empty stocks: every operation takes the lock.
//! - An operation that the stock cannot serve takes the lock. A release adds to the pool, and moves
//!   half of its full stock there, too. A reservation takes from the pool (and some more for the
//!   stock). If the pool is short, it *closes and empties* one stock after the other; if all are
//!   closed and it is still short, it empties all once more; if even that is short, it refuses. The
//!   gathered units go to the pool, and the stocks are opened.
//!
//! # Why it is exact
//! It is linearizable: each call takes effect at one instant between its start and its end, and in
//! the order of these instants a plain counter would have given the same answers: `reserve(n)`
//! succeeds exactly if `n` units are free at its instant, and all `n` units of a release are free
//! from its instant on.
//!
//! - Fast paths take effect at their compare-and-swap, slow releases at the addition to the pool,
//!   granted slow reservations when they have gathered enough under the lock. Each unit is in one
//!   place at a time, so none is granted twice: never more than `limit` are reserved.
//! - A refusal takes effect at the instant `T` at which the last stock is closed. Until the stocks
//!   are opened all reservations wait for the lock, as do releases that do not fit; stocks can only
//!   grow, by fast releases. The second round finds in each stock at least what it held at `T`, so
//!   the gathered sum is at least what was free at `T`; it was less than `n`, so fewer than `n`
//!   units were free at `T`. (One round is not enough: a stock emptied first may be filled by a
//!   release while an equal number is reserved from one emptied later; the sum misses units though
//!   some were free all the time.)
//!
//! "Order of instants" on weakly ordered CPUs: all accesses to a stock are acquire-release
//! read-modify-writes, so the second round sees everything that happens before a reservation which
//! the closing of its stock found done.

use crate::padded::Padded;
use crate::percpu::PerCpu;
use alloc::collections::TryReserveError;
use machine::{Atomic, AtomicInt, CpuRange, Machine, Ordering, SharedCell};

/// A number of units, at most a limit, reserved and released on many CPUs.
///
/// 128 bytes per CPU and 256 more. If a CPU's reservations and releases balance within its stock,
/// each is one compare-and-swap on the CPU's own cache line; otherwise it takes a lock, and near
/// the limit touches one line per CPU. A refusal closes the stocks of all CPUs for a moment; if
/// refusals are common, the limit is the problem.
pub struct Limited<M: Machine, const ROUNDS: usize = 2> {
    limit: u64,
    /// The most units that a stock holds.
    cap: u64,
    /// Free units of the CPU, and [`CLOSED`]. The CPU itself takes and adds units; any CPU may do
    /// so under the lock.
    stocks: PerCpu<M::AtomicU64, M>,
    /// 1 while a CPU uses `pool`. Acquired with the CPU pinned.
    lock: Padded<M::AtomicU32>,
    /// Free units in no stock; negative while more is used than the limit allows. Guarded by
    /// `lock`.
    pool: Padded<M::Cell<i64>>,
}

/// In a stock: reservations need the lock.
const CLOSED: u64 = 1 << 63;

impl<M: Machine> Limited<M> {
    /// A counter at 0 with a limit (treated as 2^63 - 1 if it is higher). All stocks together hold
    /// at most half of the limit.
    pub fn new(cpus: CpuRange, limit: u64) -> Self {
        Self::with_stock(cpus, limit, limit / (2 * cpus.len() as u64))
    }

    /// A counter at 0 with a limit; an error if memory is short.
    pub fn try_new(cpus: CpuRange, limit: u64) -> Result<Self, TryReserveError> {
        let stocks = PerCpu::try_new(cpus, |_| M::AtomicU64::new(0))?;
        Ok(Self::of(stocks, limit, limit / (2 * cpus.len() as u64)))
    }

    /// A counter whose stocks hold at most `cap` units each; with 0 every operation takes one lock.
    pub fn with_stock(cpus: CpuRange, limit: u64, cap: u64) -> Self {
        Self::with_rounds(cpus, limit, cap)
    }

    /// A counter at `used`, which may be above the limit: then nothing is granted until enough is
    /// released, and every call takes the lock. Both are below 2^62.
    pub fn try_with_used(cpus: CpuRange, limit: u64, used: u64) -> Result<Self, TryReserveError> {
        let most = (CLOSED >> 1) - 1;
        let (limit, used) = (limit.min(most), used.min(most));
        let cap = if used <= limit {
            limit / (2 * cpus.len() as u64)
        } else {
            0
        };
        let stocks = PerCpu::try_new(cpus, |_| M::AtomicU64::new(0))?;
        let counter = Self::of(stocks, limit, cap);
        // SAFETY: the counter is still local to this function.
        unsafe { *counter.pool.write() -= used as i64 };
        Ok(counter)
    }
}

impl<M: Machine, const ROUNDS: usize> Limited<M, ROUNDS> {
    /// A counter that empties stocks `ROUNDS` times before it refuses; 2 is the correct number.
    #[doc(hidden)]
    pub fn with_rounds(cpus: CpuRange, limit: u64, cap: u64) -> Self {
        let stocks = PerCpu::new(cpus, |_| M::AtomicU64::new(0));
        Self::of(stocks, limit, cap)
    }

    /// A counter at 0 with these empty stocks.
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
    /// Everything before the units' release happens before the return.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the counter's machine.
    #[inline]
    #[must_use = "nothing is reserved if it is refused"]
    pub fn reserve(&self, n: u64) -> bool {
        let pin = M::pin();
        let stock = self.stocks.get(&pin);
        let mut free = stock.load(Ordering::Relaxed);
        // A closed stock is above any limit.
        while n <= free && free < CLOSED {
            // Acquire and release: see the module docs.
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
    /// If the caller runs on no CPU of the counter's machine; if more is released than is reserved
    /// and the pool shows it. Then nothing is released.
    #[inline]
    pub fn release(&self, n: u64) {
        let pin = M::pin();
        let stock = self.stocks.get(&pin);
        let mut free = stock.load(Ordering::Relaxed);
        while n <= self.cap && (free & !CLOSED) <= self.cap - n {
            // Acquire and release: see the module docs.
            match stock.compare_exchange_weak(free, free + n, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => free = now,
            }
        }
        self.release_slow(&pin, n);
    }

    /// Units reserved; exact while no CPU reserves or releases.
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
                self.refill(pin, pool, n as u64);
            }
            granted
        })
    }

    /// Moves free units from the stocks to the pool, until it has `n`.
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

    /// Fills this CPU's stock to half its cap, with no more than a CPU's share of the pool. It
    /// leaves room for the `taken` units, which go to the stock when they are released.
    fn refill(&self, pin: &M::Pin, pool: &mut i64, taken: u64) {
        let stock = self.stocks.get(pin);
        // Relaxed: only this CPU and the lock's holder add, and the caller is both.
        let free = stock.load(Ordering::Relaxed);
        let room = self.cap.saturating_sub(taken);
        let missing = (self.cap / 2).min(room).saturating_sub(free);
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
            // Half of a full stock goes back, so that the next releases are cheap.
            let stock = self.stocks.get(pin);
            let surplus = stock.load(Ordering::Relaxed).saturating_sub(self.cap / 2);
            let sum = n
                .checked_add(surplus)
                .and_then(|more| pool.checked_add_unsigned(more));
            // Before anything changes: a caller that goes on after the panic finds the limit kept.
            let Some(sum) = sum.filter(|&sum| sum <= self.limit as i64) else {
                return false;
            };
            // This is the instant of the release: it is visible to every later holder of the lock.
            *pool = sum;
            // The stock is open, and only this CPU and the lock's holder take from it: it has what
            // was read, at least.
            if surplus > 0 {
                stock.fetch_sub(surplus, Ordering::AcqRel);
            }
            true
        });
        assert!(sound, "counter: more released than was reserved");
    }

    /// Runs `f`, which must not panic, on the pool under the lock.
    fn with_pool<R>(&self, _pin: &M::Pin, f: impl FnOnce(&mut i64) -> R) -> R {
        M::spin_until(|| {
            // Acquire: pairs with the release that ends this function.
            self.lock
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        });
        // SAFETY: the caller's CPU holds the lock, so no other CPU accesses the pool.
        let result = f(unsafe { &mut *self.pool.write() });
        // Release: pairs with the acquire that begins this function.
        self.lock.store(0, Ordering::Release);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hosted::Hosted;
    use machine::Topology;

    /// A reservation from the pool leaves the CPU units for its next ones: half of its cap, but no
    /// more than a CPU's share of the pool.
    #[test]
    fn a_reservation_at_the_pool_refills_the_stock() {
        let machine = Hosted::new(2);
        for (limit, refilled) in [(100, 10), (12, 3)] {
            let counter = Limited::<Hosted>::with_stock(machine.cpus(), limit, 20);
            machine.on_cpu(1, || {
                assert!(counter.reserve(5));
                let stocks = counter.stocks.iter().map(|s| s.load(Ordering::Relaxed));
                assert_eq!(stocks.collect::<alloc::vec::Vec<_>>(), [0, refilled]);
                assert_eq!(counter.used(), 5);
            });
        }
    }
}
