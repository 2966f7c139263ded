//! Places of threads.

use super::abort;
use super::permit::Permit;
use crate::errno;
use crate::tsan::{Guard, Guarded};
use crate::words;
use core::ffi::c_void;
use core::mem::transmute;
use core::ptr::{from_ref, with_exposed_provenance};
use core::sync::atomic::{AtomicUsize, Ordering};
use machine::{CpuId, CpuRange, Locals, MAX_CPUS};
use std::panic::set_hook;
use std::sync::{LazyLock, OnceLock};

/// A thread's data. Made for the first thread to take the place, and never freed.
pub(crate) struct Place {
    /// The place's index in the table.
    index: usize,
    /// The thread as a CPU. `NONE` if too many threads came before it; it can still use locks.
    pub(crate) cpu: CpuId,
    /// The thread waits for it. A waker with the name of an ended thread may give it once more, to
    /// the next thread of the place.
    pub(crate) permit: Permit,
    /// Only the place's thread accesses them; the table's lock orders one thread's before the
    /// next's.
    locals: Locals,
}

// SAFETY: see `locals`.
unsafe impl Sync for Place {}

/// The CPUs of the machine, by place.
pub(crate) static CPUS: LazyLock<CpuRange> = LazyLock::new(|| CpuRange::claim(MAX_CPUS));

/// The check that each thread calls when it ends, if any.
static CHECK: OnceLock<fn()> = OnceLock::new();

/// The number of places.
static BEGUN: AtomicUsize = AtomicUsize::new(0);

/// All places.
struct Table {
    places: Vec<&'static Place>,
    /// Indices of the free places.
    free: Vec<usize>,
    /// The key whose destructor frees a place.
    key: libc::pthread_key_t,
}

fn table() -> Guard<'static, Table> {
    static TABLE: LazyLock<Guarded<Table>> = LazyLock::new(|| Guarded::new(Table::new()));
    TABLE.lock()
}

/// Lets each thread call `check` when it ends. Always called with the same function.
pub(crate) fn check_at_end(check: fn()) {
    let _errno = errno::keep();
    CHECK.get_or_init(|| check);
}

/// Returns the number of places that were ever taken.
pub(crate) fn begun() -> usize {
    // Relaxed: the caller's fence pairs with the publication by the thread that raised it.
    BEGUN.load(Ordering::Relaxed)
}

/// The calling thread's place.
#[inline(always)]
pub(crate) fn mine() -> &'static Place {
    // SAFETY: the word is 0 or a place that `take` has stored; places are never freed.
    match unsafe { with_exposed_provenance::<Place>(words::PLACE.get()).as_ref() } {
        Some(place) => place,
        None => take(),
    }
}

impl Place {
    #[inline(always)]
    pub(crate) fn locals(&self) -> &Locals {
        &self.locals
    }
}

impl Table {
    fn new() -> Self {
        set_hook(Box::new(|panic| {
            let why = panic.payload_as_str().unwrap_or("it panicked");
            abort("scalevm", why)
        }));
        let mut key = 0;
        // SAFETY: the key is valid for the call; the destructor may run on any thread, as it has
        // the place as its value.
        if unsafe { libc::pthread_key_create(&mut key, Some(give_up)) } != 0 {
            abort("scalevm", "the process has no pthread key left");
        }
        Table {
            places: Vec::new(),
            free: Vec::new(),
            key,
        }
    }

    fn take(&mut self) -> &'static Place {
        // The lowest, so that scans are short.
        if let Some(at) = (0..self.free.len()).min_by_key(|&at| self.free[at]) {
            return self.places[self.free.swap_remove(at)];
        }
        let index = self.places.len();
        let place = Box::leak(Box::new(Place {
            index,
            cpu: if index < MAX_CPUS {
                CPUS.cpu(index)
            } else {
                CpuId::NONE
            },
            permit: Permit::new(),
            locals: Locals::ZERO,
        }));
        self.places.push(place);
        // Relaxed: a section that the thread publishes comes later.
        BEGUN.store(index + 1, Ordering::Relaxed);
        place
    }
}

/// Takes a place for the calling thread.
#[cold]
#[inline(never)]
fn take() -> &'static Place {
    let _errno = errno::keep();
    let mut table = table();
    let place = table.take();
    let value = from_ref(place).cast::<c_void>();
    // SAFETY: the key exists.
    if unsafe { libc::pthread_setspecific(table.key, value) } != 0 {
        abort("scalevm", "no memory for a thread's place");
    }
    // SAFETY: an id is an integer (`repr(transparent)`).
    words::CPU.set(unsafe { transmute::<CpuId, usize>(place.cpu) });
    words::PLACE.set(value.expose_provenance());
    place
}

/// Frees the place of the calling thread, which ends. A later destructor may take one again.
unsafe extern "C" fn give_up(_: *mut c_void) {
    if let Some(check) = CHECK.get() {
        check();
    }
    let place = mine();
    if let Some(at_exit) = place.locals.at_exit.take() {
        at_exit(&place.locals);
    }
    place.locals.words.iter().for_each(|word| word.set(0));
    words::PLACE.set(0);
    // SAFETY: an id is an integer (`repr(transparent)`).
    words::CPU.set(unsafe { transmute::<CpuId, usize>(CpuId::NONE) });
    table().free.push(place.index);
}
