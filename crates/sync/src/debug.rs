//! `Debug`: guards show their data; other types that CPUs share show only their names.

use crate::adaptive::{Adaptive, BackOff};
use crate::counter::Limited;
use crate::ecosystem::Acquisition;
use crate::epoch::{Deferred, Domain, Options, Protocol, Section, Sleepable, SleepableSection};
use crate::hazard;
use crate::mutex::{Mutex, MutexGuard};
use crate::obm::{Obm, RestrictedObm};
use crate::percpu::PerCpu;
use crate::raw::{RawGuard, RawLock};
use crate::rwlock::{
    FreebsdRw, RawReadGuard, RawRw, RawWriteGuard, ReadGuard, RwLock, Rwsem, SpinParkRw, WriteGuard,
};
use crate::sleepq::{GlobalQueue, Hashed};
use crate::spin::{
    Clh, ClhHeld, Hapax, HapaxHeld, K42, Mcs, McsHeld, McsNode, Queued, Reciprocating,
    ReciprocatingHeld, TestAndSet, TicketLock,
};
use crate::turnstile::{Chain, Turnstiles};
use crate::watch::profile::{Tables, Ticket};
use crate::watch::{Both, Held, Watched};
use core::fmt::{Debug, Formatter, Result};
use machine::{Machine, opaque_debug};

opaque_debug! {
    [H] Acquisition<H>;
    [M: Machine, const SPINS: u32, B: BackOff] Adaptive<M, SPINS, B>;
    [A, B] Both<A, B>;
    [M: Machine] Chain<'_, M>;
    [M: Machine] Clh<M>;
    [M: Machine] ClhHeld<M>;
    [M: Machine] Deferred<M>;
    [M: Machine, P: Protocol] Domain<M, P>;
    [M: Machine, const LOOKS: u32, const TRIES: u32, const LOOPS: usize]
        FreebsdRw<M, LOOKS, TRIES, LOOPS>;
    [M: Machine] GlobalQueue<M>;
    [M: Machine] hazard::Domain<M>;
    [M: Machine] hazard::Section<'_, M>;
    [M: Machine, T] hazard::Shared<M, T>;
    [M: Machine] hazard::Slot<'_, M>;
    [M: Machine] Hashed<M>;
    [H, T] Held<H, T>;
    [M: Machine] Hapax<M>;
    [] HapaxHeld;
    [M: Machine] K42<M>;
    [M: Machine, const ROUNDS: usize] Limited<M, ROUNDS>;
    [M: Machine] Mcs<M>;
    [M: Machine] McsHeld<M>;
    [M: Machine] McsNode<M>;
    [M: Machine, R: RawLock<M>, T: Send] Mutex<M, R, T>;
    [M: Machine, const SPINS: u32, B: BackOff] Obm<M, SPINS, B>;
    [] Options;
    [T, C] PerCpu<T, C>;
    [M: Machine, const KEEP: u32] Queued<M, KEEP>;
    [M: Machine, R: RawLock<M>] RawGuard<'_, M, R>;
    [M: Machine, R: RawRw<M>] RawReadGuard<'_, M, R>;
    [M: Machine, R: RawRw<M>] RawWriteGuard<'_, M, R>;
    [M: Machine] Reciprocating<M>;
    [] ReciprocatingHeld;
    [M: Machine, R: RawRw<M>, T: Send] RwLock<M, R, T>;
    [M: Machine, const SPINS: u32] RestrictedObm<M, SPINS>;
    [M: Machine, const SPIN: u64, const WAIT: u64] Rwsem<M, SPIN, WAIT>;
    [M: Machine, P: Protocol] Section<'_, M, P>;
    [M: Machine, P: Protocol] Sleepable<M, P>;
    [M: Machine, P: Protocol] SleepableSection<'_, M, P>;
    [M: Machine, const SPINS: u32] SpinParkRw<M, SPINS>;
    [] Tables;
    [M: Machine] TestAndSet<M>;
    [] Ticket;
    [M: Machine, P] TicketLock<M, P>;
    [M: Machine] Turnstiles<M>;
    [M, R, C, O] Watched<M, R, C, O>;
}

macro_rules! guard_debug {
    ($guard:ident, $lock:ident) => {
        impl<M: Machine, R: $lock<M>, T: Send + Debug> Debug for $guard<'_, M, R, T> {
            fn fmt(&self, f: &mut Formatter<'_>) -> Result {
                (**self).fmt(f)
            }
        }
    };
}

impl<M: Machine, T: Debug> Debug for hazard::Protected<'_, M, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        (**self).fmt(f)
    }
}

guard_debug!(MutexGuard, RawLock);
guard_debug!(ReadGuard, RawRw);
guard_debug!(WriteGuard, RawRw);
