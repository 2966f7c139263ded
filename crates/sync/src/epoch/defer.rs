//! Callbacks that run once no section can see their object any more.

use super::section::DUE;
use super::stall::Blocked;
use super::{Domain, Protocol};
use crate::deferred::Deferred;
use alloc::boxed::Box;
use machine::{Machine, Pinned, SharedCell};

/// The error if as many callbacks are pending on the CPU as [`super::Options::limit`] allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl core::fmt::Display for Full {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("too many callbacks are pending on this CPU")
    }
}

impl core::error::Error for Full {}

/// The number of callbacks between two attempts to run some.
const BATCH: u64 = 64;

impl<M: Machine, P: Protocol> Domain<M, P> {
    /// Runs `run(node)` once every section has ended that was open at the call.
    ///
    /// # When
    /// Calls are stamped in batches, with the global epoch `e` read after a fence that follows the
    /// last of them, and run when `e` has passed (module docs), so no earlier than an advance to `e
    /// + 2` would allow. The epoch in the caller's own record is no valid stamp: while the caller's
    /// section is at `e`, `g` may be `e + 1`, and a section that began at `e + 1` may hold the
    /// object. With that stamp `g = e + 2` is too early (the bug in ck_epoch 0.7.1: that reader
    /// does not hinder the advance), and no fixed distance is enough, since the record may be older
    /// than `g` by any amount when it is published.
    ///
    /// # Where
    /// Every 64th call, and every call at the limit, tries to run some callbacks: a call outside
    /// sections does so itself, one inside at the outermost exit. [`Domain::settle`],
    /// [`Domain::barrier`] and the drop of the domain do so too. Callbacks run outside sections of
    /// this domain, on a pinned CPU; those of one CPU run in order, one at a time. They may enter
    /// sections and `call`; they must not block, nor acquire a lock that is held where sections end
    /// or `call` is made.
    ///
    /// # Memory
    /// Outside sections, a call at [`super::Options::limit`] helps to advance and waits: no CPU
    /// ever has more pending. Inside, it would wait for its own section: the call succeeds, and the
    /// outermost exit waits until the limit is kept. So a CPU has at most `limit` callbacks
    /// pending, plus those that its open section or a running batch of callbacks has deferred.
    /// During such a call or exit hold nothing that a reader needs in order to leave;
    /// [`Domain::try_call`] never waits.
    ///
    /// # Safety
    /// `node` is valid, in no list, and in an object that only sections open now can reach. Until
    /// `run` is called the object stays valid and in place, and `node` is not touched. `run` may be
    /// called on any CPU.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the domain's machine.
    pub unsafe fn call(&self, node: *mut Deferred<M>, run: unsafe fn(*mut Deferred<M>)) {
        loop {
            let pin = M::pin();
            let record = self.records.get(&pin);
            let may_wait = !record.inside(&pin) && !record.running(&pin);
            let limit = if may_wait { self.limit() } else { usize::MAX };
            // SAFETY: the caller keeps `Domain::call`'s contract, which is `push`'s.
            if unsafe { self.push(&pin, node, run, limit) }.is_ok() {
                return;
            }
            drop(pin);
            self.reduce(self.limit() - 1);
        }
    }

    /// Runs `run(node)` once every section has ended that was open at the call, or fails at the
    /// limit, where [`Domain::call`] waits; the caller then still owns the object.
    ///
    /// # Errors
    /// [`Full`] if the CPU has [`super::Options::limit`] callbacks pending and no step runs one.
    ///
    /// # Safety
    /// The conditions of [`Domain::call`] hold.
    ///
    /// # Panics
    /// The conditions of [`Domain::call`] hold.
    pub unsafe fn try_call(
        &self,
        node: *mut Deferred<M>,
        run: unsafe fn(*mut Deferred<M>),
    ) -> Result<(), Full> {
        let pin = M::pin();
        // SAFETY: the caller keeps `Domain::call`'s contract, which is `push`'s.
        unsafe { self.push(&pin, node, run, self.limit()) }.or_else(|Full| {
            self.step_own(&pin);
            // SAFETY: the caller keeps `push`'s contract, and the failed attempt did not touch the
            // node.
            unsafe { self.push(&pin, node, run, self.limit()) }
        })
    }

    /// Drops `value` once every section has ended that was open at the call, as
    /// [`Domain::call`] does. Allocates a node for it.
    ///
    /// # Panics
    /// The conditions of [`Domain::call`] hold.
    pub fn defer_drop<T: Send + 'static>(&self, value: Box<T>) {
        let node = Dropped::<M, T>::node(value);
        // SAFETY: the node is new and owned by its box; a `Send` value may be dropped on any CPU,
        // and only the node owns it.
        unsafe { self.call(node, Dropped::<M, T>::run) }
    }

    /// Drops `value` once every section has ended that was open at the call, or returns it at the
    /// limit.
    ///
    /// # Errors
    /// The value, if the CPU has [`super::Options::limit`] callbacks pending.
    ///
    /// # Panics
    /// The conditions of [`Domain::call`] hold.
    pub fn try_defer_drop<T: Send + 'static>(&self, value: Box<T>) -> Result<(), Box<T>> {
        let node = Dropped::<M, T>::node(value);
        // SAFETY: the node is new and owned by its box, and only the node owns the `Send` value.
        unsafe { self.try_call(node, Dropped::<M, T>::run) }
            // SAFETY: a refused node still belongs to this call, as `node` made it.
            .map_err(|Full| unsafe { Dropped::<M, T>::value(node) })
    }

    /// Runs this CPU's callbacks that are ready, and waits until no more are pending than
    /// [`super::Options::limit`] allows. Does nothing inside a section or a callback.
    ///
    /// An idle loop or a timer calls this, so that callbacks do not linger on a CPU that defers no
    /// more.
    ///
    /// # Panics
    /// If the caller runs on no CPU of the domain's machine.
    pub fn settle(&self) {
        self.reduce(self.limit());
    }

    /// Callbacks pending on the CPU with this index, a moment ago.
    ///
    /// # Panics
    /// If there is no such CPU.
    pub fn pending(&self, index: usize) -> usize {
        let pin = M::pin();
        self.queues.of(index).with(&pin, |lists| lists.pending())
    }

    /// Steps until at most `most` callbacks are pending on this CPU.
    #[cold]
    #[inline(never)]
    fn reduce(&self, most: usize) {
        let mut round = 0;
        loop {
            let pin = M::pin();
            let Some(stepped) = self.step_own(&pin) else {
                return;
            };
            let pending = self.queues.get(&pin).with(&pin, |lists| lists.pending());
            drop(pin);
            if pending <= most {
                return;
            }
            if let Err(blocked) = stepped {
                self.stalled(blocked, round);
                round = round.saturating_add(1);
            }
        }
    }

    /// Takes a step for this CPU's callbacks; `None` inside a section or a callback, where
    /// callbacks must not run.
    fn step_own(&self, pin: &M::Pin) -> Option<Result<(), Blocked>> {
        let record = self.records.get(pin);
        let index = self.records.cpus().index_of(pin.cpu());
        (!record.inside(pin) && !record.running(pin)).then(|| self.step(pin, index))
    }

    /// Appends the callback unless `limit` are pending, and makes sure that a step follows every
    /// [`BATCH`]th call.
    ///
    /// # Safety
    /// The conditions of [`Domain::call`] hold.
    unsafe fn push(
        &self,
        pin: &M::Pin,
        node: *mut Deferred<M>,
        run: unsafe fn(*mut Deferred<M>),
        limit: usize,
    ) -> Result<(), Full> {
        let record = self.records.get(pin);
        let due = self.queues.get(pin).with(pin, |lists| {
            if lists.pending() >= limit {
                return Err(Full);
            }
            // SAFETY: the caller hands over a valid node that may move to any CPU.
            unsafe { lists.defer(node, run) };
            Ok(lists.deferred.is_multiple_of(BATCH) || lists.pending() >= self.limit())
        })?;
        if due && record.inside(pin) {
            // SAFETY: pinned, so no other CPU accesses `nesting`.
            unsafe { *record.nesting.write() |= DUE };
        } else if due {
            self.step_own(pin);
        }
        Ok(())
    }
}

/// A node for a box.
#[repr(C)]
struct Dropped<M: Machine, T> {
    /// The first field, so that a pointer to the node is also one to the whole.
    node: Deferred<M>,
    value: Box<T>,
}

impl<M: Machine, T> Dropped<M, T> {
    fn node(value: Box<T>) -> *mut Deferred<M> {
        let node = Deferred::<M>::new();
        Box::into_raw(Box::new(Dropped { node, value })).cast()
    }

    /// # Safety
    /// `node` comes from [`Dropped::node`] with the same types, and the caller hands it over.
    unsafe fn value(node: *mut Deferred<M>) -> Box<T> {
        // SAFETY: `node` points to a leaked box of this type, which the caller hands over.
        unsafe { Box::from_raw(node.cast::<Self>()) }.value
    }

    /// # Safety
    /// `node` comes from [`Dropped::node`] with the same types, and the caller hands it over.
    unsafe fn run(node: *mut Deferred<M>) {
        // SAFETY: the caller keeps the contract of `value`.
        drop(unsafe { Self::value(node) });
    }
}
