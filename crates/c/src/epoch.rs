//! epochs: waiting until every reader that may still read an object has left
//!
//! Readers mark sections by enter and exit; sections nest, and cost two stores and a fence. A
//! thread that unlinked an object waits, queues a callback, or polls from time to time. It may free
//! the object once every section has ended that was open before.
//!
//! A section belongs to its thread, must be short, and must not wait for anything that waits for
//! it. Sections of one epoch delay no wait of another. An epoch made for n threads takes 256 bytes
//! for each. The threads in the first n places may use it, and it aborts in any other: n must be at
//! least the number of threads that use the library at once. An epoch with a static initialiser, or
//! made for 0 threads, is for 1024 threads. The first use allocates the epoch's memory.
//!
//! Callbacks run in the thread that queued them: at each 64th call, at a poll, and at the end of a
//! section in which one of these fell due; callbacks of a thread that has ended run at a barrier.
//! Callbacks may enter sections and queue callbacks, but must neither wait nor acquire a lock that
//! a thread holds around any of these calls.
//!
//! What a section did happens before the return of the waits, the polls that are true, and the
//! callbacks that it delayed.

use crate::errno;
use crate::object::{self, Owned, is, object, pin};
use crate::process::{Pin, Process, abort, check_at_end};
use crate::tsan::{self, Guard, Guarded};
use core::ptr;
use libc::{EBUSY, EINVAL, ENOMEM, c_int};
use machine::{CpuRange, Cpus, Pinned};
use sync::epoch::{Deferred, Domain, Snapshot};

/// An epoch.
#[repr(C)]
pub struct scalevm_epoch_t {
    domain: usize,
    threads: u32,
    reserved: u32,
}

/// The library's own type.
#[repr(C)]
pub(crate) struct Epoch {
    made: Owned<Made>,
    threads: u32,
    reserved: u32,
}

object!(scalevm_epoch_t = Epoch, 16, 8);

/// A callback's place in the object that it frees. It needs no initialisation.
#[repr(C)]
pub struct scalevm_epoch_entry_t {
    words: [usize; 4],
}

/// The library's own type.
#[repr(C)]
struct Entry {
    /// First, so that a pointer to it is one to the entry.
    node: Deferred<Process>,
    run: unsafe extern "C" fn(*mut scalevm_epoch_entry_t),
    epoch: *const scalevm_epoch_t,
}

const _: () = assert!(size_of::<scalevm_epoch_entry_t>() == 32 && size_of::<Entry>() == 32);
const _: () = assert!(align_of::<scalevm_epoch_entry_t>() == 8 && align_of::<Entry>() == 8);

/// An epoch in use.
struct Made {
    domain: Domain<Process>,
    cpus: CpuRange,
}

/// All epochs in use, for threads that end.
fn all() -> Guard<'static, Vec<Known>> {
    static ALL: Guarded<Vec<Known>> = Guarded::new(Vec::new());
    ALL.lock()
}

/// One of them; it leaves the list before it is freed.
struct Known(*const Made);

// SAFETY: `Made` is shared between threads.
unsafe impl Send for Known {}

impl Made {
    fn new(threads: u32) -> Result<Box<Self>, c_int> {
        let cpus = object::cpus(threads).ok_or(EINVAL)?;
        let domain = Domain::try_new(cpus).map_err(|_| ENOMEM)?;
        let made = Box::new(Made { domain, cpus });
        check_at_end(thread_ends);
        all().push(Known(&*made));
        Ok(made)
    }

    #[inline(always)]
    fn pin(&self, function: &str) -> Pin {
        pin(self.cpus, function)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        all().retain(|known| !ptr::eq(known.0, self));
    }
}

impl Epoch {
    #[inline(always)]
    fn made(&self) -> &Made {
        self.made
            .get_or_make("scalevm_epoch", "made for more than 1024 threads", || {
                Made::new(self.threads)
            })
    }
}

/// Initialises an epoch for this many threads (0 means 1024): returns 0, EINVAL if there are too
/// many, or ENOMEM. `SCALEVM_EPOCH_INIT` makes an epoch for 1024 threads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_epoch_init(epoch: *mut scalevm_epoch_t, threads: u32) -> c_int {
    // SAFETY: the C caller guarantees this.
    unsafe {
        object::init(epoch);
        (*epoch).threads = threads;
    }
    // SAFETY: the C caller guarantees this.
    unsafe { is(epoch) }.made.begin(Made::new(threads))
}

/// Runs all callbacks and frees what the epoch owns: returns 0, or EBUSY without an effect if a
/// section is open. The epoch may be used again, as after `SCALEVM_EPOCH_INIT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_epoch_destroy(epoch: *mut scalevm_epoch_t) -> c_int {
    // SAFETY: the C caller guarantees this.
    let made = unsafe { is(epoch) }.made();
    if !made.domain.has_passed(&made.domain.snapshot()) {
        return EBUSY;
    }
    tsan::acquire(epoch);
    made.domain.barrier();
    // SAFETY: the C caller guarantees that no thread uses the epoch.
    drop(unsafe { is(epoch) }.made.take());
    0
}

/// Enters a section.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_epoch_enter(epoch: *mut scalevm_epoch_t) {
    // SAFETY: the C caller guarantees this.
    let made = unsafe { is(epoch) }.made();
    // SAFETY: a thread stays its CPU while it lives, and its end in a section aborts.
    unsafe { made.domain.enter_raw(&made.pin("scalevm_epoch_enter")) };
}

/// Leaves the innermost section. Aborts if the caller is in none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_epoch_exit(epoch: *mut scalevm_epoch_t) {
    // SAFETY: the C caller guarantees this.
    let made = unsafe { is(epoch) }.made();
    let pin = made.pin("scalevm_epoch_exit");
    if !made.domain.is_inside(&pin) {
        abort("scalevm_epoch_exit", "the caller is in no section");
    }
    tsan::release(epoch);
    // SAFETY: entered by `scalevm_epoch_enter`; the C caller guarantees what it does afterwards.
    if unsafe { made.domain.exit_raw(&pin) } {
        made.domain.settle();
    }
}

/// Returns true if the caller is in a section.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_epoch_inside(epoch: *mut scalevm_epoch_t) -> bool {
    // SAFETY: the C caller guarantees this.
    let made = unsafe { is(epoch) }.made();
    made.domain.is_inside(&made.pin("scalevm_epoch_inside"))
}

/// Waits until every section has ended that was open at the call. Aborts if the caller is in one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_epoch_wait(epoch: *mut scalevm_epoch_t) {
    // SAFETY: the C caller guarantees this.
    let made = unsafe { is(epoch) }.made();
    outside(made, "scalevm_epoch_wait");
    made.domain.wait();
    tsan::acquire(epoch);
}

/// Returns a name for this moment, for scalevm_epoch_passed(). It is never 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_epoch_snapshot(epoch: *mut scalevm_epoch_t) -> u64 {
    // SAFETY: the C caller guarantees this.
    unsafe { is(epoch) }.made().domain.snapshot().to_bits()
}

/// Returns true if every section has ended that was open at that moment. It may return false for a
/// while longer; repeated calls are enough for it to return true. Aborts if
/// scalevm_epoch_snapshot() never returned this moment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_epoch_passed(epoch: *mut scalevm_epoch_t, moment: u64) -> bool {
    // SAFETY: the C caller guarantees this.
    let made = unsafe { is(epoch) }.made();
    let Some(snapshot) = Snapshot::from_bits(moment) else {
        abort("scalevm_epoch_passed", "no moment");
    };
    let passed = made.domain.has_passed(&snapshot);
    if passed {
        tsan::acquire(epoch);
    } else if moment > made.domain.snapshot().to_bits() {
        abort("scalevm_epoch_passed", "no moment");
    }
    passed
}

/// Queues a callback: the library calls run(entry) once every section has ended that was open at
/// the call. Until then the entry must stay in place, and be used for nothing else. Returns at
/// once, unless the caller has 16384 callbacks pending: then it waits for some, if it is in no
/// section.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_epoch_call(
    epoch: *mut scalevm_epoch_t,
    entry: *mut scalevm_epoch_entry_t,
    run: unsafe extern "C" fn(*mut scalevm_epoch_entry_t),
) {
    // SAFETY: the C caller guarantees this.
    let made = unsafe { is(epoch) }.made();
    let _pin = made.pin("scalevm_epoch_call");
    let place = entry.cast::<Entry>();
    tsan::release(entry);
    // SAFETY: the C caller guarantees that the entry is valid, in no list, and stays until
    // `called`.
    unsafe {
        place.write(Entry {
            node: Deferred::new(),
            run,
            epoch,
        });
        made.domain.call(place.cast(), called);
    }
}

/// Calls the callback of an entry.
///
/// # Safety
/// The node is an [`Entry`]'s.
unsafe fn called(node: *mut Deferred<Process>) {
    // SAFETY: the caller guarantees this.
    let &Entry { run, epoch, .. } = unsafe { &*node.cast() };
    tsan::acquire(epoch);
    tsan::acquire(node);
    // A callback runs inside of calls that have nothing to do with it.
    let _errno = errno::keep();
    // SAFETY: C queued it to be called now.
    unsafe { run(node.cast()) };
}

/// Runs the caller's callbacks that are due, but none in a section; returns true if the caller has
/// no callbacks left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_epoch_poll(epoch: *mut scalevm_epoch_t) -> bool {
    // SAFETY: the C caller guarantees this.
    let made = unsafe { is(epoch) }.made();
    let index = made.cpus.index_of(made.pin("scalevm_epoch_poll").cpu());
    made.domain.settle();
    made.domain.pending(index) == 0
}

/// Waits until every callback has run that any thread queued before the call. Aborts if the caller
/// is in a section or in a callback.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scalevm_epoch_barrier(epoch: *mut scalevm_epoch_t) {
    // SAFETY: the C caller guarantees this.
    let made = unsafe { is(epoch) }.made();
    outside(made, "scalevm_epoch_barrier");
    made.domain.barrier();
}

fn outside(made: &Made, function: &str) {
    if made.domain.is_inside(&made.pin(function)) {
        abort(function, "the caller is in a section");
    }
}

/// Called as the calling thread ends.
fn thread_ends() {
    for known in all().iter() {
        // SAFETY: epochs leave the list before they are freed.
        let made = unsafe { &*known.0 };
        let pin = Process::pin();
        if made.cpus.index_of(pin.cpu()) < made.cpus.len() && made.domain.is_inside(&pin) {
            abort("scalevm_epoch", "a thread ended in a section");
        }
    }
}
