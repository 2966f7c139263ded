//! exact counters with a limit
//!
//! A counter has a limit of units. Threads reserve units and release them. Each thread keeps a
//! share of the free units, so that it rarely writes a cache line of another thread. Still, a
//! reservation is refused only if too few units are free at that moment, and the reserved units
//! never exceed the limit.
//!
//! A counter made for n threads takes 128 bytes for each; the threads' shares together hold at most
//! half of the limit. The threads in the first n places may use it, and it aborts in any other: n
//! must be at least the number of threads that use the library at once. A counter with a static
//! initialiser, or made for 0 threads, is for 1024 threads: name the number if the limit is small,
//! as each share is then small too. The first use allocates the counter's memory.
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

/// The library's own type.
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
/// The limits of a counter that is made at its first use, for the message.
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

/// Initialises a counter at 0 with this limit, at most 2^63 - 1, for this many threads (0 means
/// 1024): returns 0, EINVAL if the limit or the number of threads is too high, or ENOMEM.
/// `SCALEVM_COUNTER_INIT(limit)` makes a counter for 1024 threads; if its limit is too high, the
/// first use aborts.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_counter_init(
    counter: *mut scalevm_counter_t,
    limit: u64,
    threads: u32,
) -> c_int {
    // SAFETY: the C caller guarantees this.
    unsafe {
        object::init(counter);
        (*counter).limit = limit;
        (*counter).threads = threads;
    }
    // SAFETY: the C caller guarantees this.
    unsafe { is(counter) }.made.begin(Made::new(limit, threads))
}

/// Frees what the counter owns. The counter may be used again; it is at 0 and has the same limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_counter_destroy(counter: *mut scalevm_counter_t) {
    // SAFETY: the C caller guarantees that no thread uses the counter.
    drop(unsafe { is(counter) }.made.take());
}

/// Reserves n units and returns true, or reserves none and returns false if fewer are free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_counter_reserve(counter: *mut scalevm_counter_t, n: u64) -> bool {
    // SAFETY: the C caller guarantees this.
    let made = unsafe { is(counter) }.made();
    let _pin = pin(made.cpus, "scalevm_counter_reserve");
    let reserved = made.counter.reserve(n);
    if reserved {
        tsan::acquire(counter);
    }
    reserved
}

/// Releases n reserved units. Any thread may release them, and in parts. Aborts if the counter sees
/// that fewer are reserved.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_counter_release(counter: *mut scalevm_counter_t, n: u64) {
    // SAFETY: the C caller guarantees this.
    let made = unsafe { is(counter) }.made();
    let _pin = pin(made.cpus, "scalevm_counter_release");
    tsan::release(counter);
    made.counter.release(n);
}

/// Returns the number of reserved units; exact while no thread reserves or releases.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_counter_used(counter: *mut scalevm_counter_t) -> u64 {
    // SAFETY: the C caller guarantees this.
    let made = unsafe { is(counter) }.made();
    let _pin = pin(made.cpus, "scalevm_counter_used");
    made.counter.used()
}
