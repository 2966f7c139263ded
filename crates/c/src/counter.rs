//! exact counters with a limit
//!
//! A counter has a limit of units. Threads reserve units and release them. Each thread keeps a
//! stock of free units, so that mostly it writes no cache line of another; yet a reservation is
//! refused only if too few units are free at that moment, and never are more reserved than the
//! limit.
//!
//! A counter made for n threads takes 128 bytes for each, and the stocks hold at most half of the
//! limit together. It may be used by the threads in the first n places, and aborts in any other: n
//! is at least the number of threads that use the library at once. One with a static initialiser,
//! or made for 0 threads, is for 1024: name the number where the limit is small, as each stock is
//! then small too. It is made in full at its first use.
//!
//! A release happens before the reservations that follow it.

use crate::object::{self, Owned, is, object, pin};
use crate::process::Process;
use crate::tsan;
use libc::{EINVAL, ENOMEM, c_int};
use machine::CpuRange;
use sync::counter::Limited;

/// A counter.
#[repr(C)]
pub struct scalevm_counter_t {
    counter: usize,
    limit: u64,
    threads: u32,
    reserved: u32,
}

/// What it is.
#[repr(C)]
pub(crate) struct Counter {
    made: Owned<Made>,
    limit: u64,
    threads: u32,
    reserved: u32,
}

object!(scalevm_counter_t = Counter, 24, 8);

/// The highest limit.
const MOST: u64 = i64::MAX as u64;
/// What a counter must not exceed that is made at its first use.
const LIMITS: &str = "made for more than 1024 threads, or with a limit of more than 2^63 - 1";

/// A counter in use.
struct Made {
    counter: Limited<Process>,
    cpus: CpuRange,
}

impl Made {
    fn new(limit: u64, threads: u32) -> Result<Box<Self>, c_int> {
        if limit > MOST {
            return Err(EINVAL);
        }
        let cpus = object::cpus(threads).ok_or(EINVAL)?;
        let counter = Limited::try_new(cpus, limit).map_err(|_| ENOMEM)?;
        Ok(Box::new(Made { counter, cpus }))
    }
}

impl Counter {
    #[inline(always)]
    fn made(&self) -> &Made {
        self.made.get_or_make("scalevm_counter", LIMITS, || {
            Made::new(self.limit, self.threads)
        })
    }
}

/// Makes a counter at 0 with this limit, at most 2^63 - 1, for this many threads, 0 for 1024:
/// returns 0, EINVAL if the limit is higher or there are too many threads, or ENOMEM.
/// `SCALEVM_COUNTER_INIT(limit)` makes one for 1024 threads; the first use of one with a higher
/// limit aborts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_counter_init(
    counter: *mut scalevm_counter_t,
    limit: u64,
    threads: u32,
) -> c_int {
    // SAFETY: C's promise.
    unsafe {
        object::init(counter);
        (*counter).limit = limit;
        (*counter).threads = threads;
    }
    // SAFETY: C's promise.
    unsafe { is(counter) }.made.begin(Made::new(limit, threads))
}

/// Gives up what the counter owns. It may be used again, with the same limit, and is at 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_counter_destroy(counter: *mut scalevm_counter_t) {
    // SAFETY: C's promise; no thread uses the counter.
    drop(unsafe { is(counter) }.made.take());
}

/// Reserves n units, or none if fewer are free; returns whether it did.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_counter_reserve(counter: *mut scalevm_counter_t, n: u64) -> bool {
    // SAFETY: C's promise.
    let made = unsafe { is(counter) }.made();
    let _pin = pin(made.cpus, "scalevm_counter_reserve");
    let reserved = made.counter.reserve(n);
    if reserved {
        tsan::acquire(counter);
    }
    reserved
}

/// Releases n reserved units, in any thread, whole or in parts. Aborts if the counter sees that
/// fewer are reserved.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_counter_release(counter: *mut scalevm_counter_t, n: u64) {
    // SAFETY: C's promise.
    let made = unsafe { is(counter) }.made();
    let _pin = pin(made.cpus, "scalevm_counter_release");
    tsan::release(counter);
    made.counter.release(n);
}

/// How many units are reserved; exact while no thread reserves or releases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_counter_used(counter: *mut scalevm_counter_t) -> u64 {
    // SAFETY: C's promise.
    let made = unsafe { is(counter) }.made();
    let _pin = pin(made.cpus, "scalevm_counter_used");
    made.counter.used()
}
