//! Mutual exclusion: lock, unlock.

use super::subject::{Subject, free};
use machine::{CpuRange, Machine};
use parking_lot::lock_api::RawMutex;
use std::marker::PhantomData;
use sync::RawLock;

/// A mutex of `sync`, on the machine `M`.
pub struct Ours<M, L>(L, PhantomData<fn() -> M>);

impl<M: Machine, L: RawLock<M> + 'static> Subject for Ours<M, L> {
    const EXCLUSIVE: bool = true;
    type Own<'a> = ();

    fn new(_: CpuRange) -> Self {
        Ours(L::new(), PhantomData)
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        let held = self.0.lock();
        section();
        // SAFETY: locked above.
        unsafe { self.0.unlock(held) };
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        let held = self.0.try_lock();
        let is_free = held.is_some();
        if let Some(held) = held {
            // SAFETY: just locked.
            unsafe { self.0.unlock(held) };
        }
        free(is_free)
    }
}

/// The mutex of `parking_lot`, without data.
pub struct ParkingLot(parking_lot::RawMutex);

impl Subject for ParkingLot {
    const EXCLUSIVE: bool = true;
    type Own<'a> = ();

    fn new(_: CpuRange) -> Self {
        ParkingLot(parking_lot::RawMutex::INIT)
    }

    fn own(&self) {}

    #[inline(always)]
    fn operate(&self, (): &mut (), section: impl FnOnce()) {
        let guard = self.0.lock();
        section();
        // SAFETY: locked above.
        unsafe { self.0.unlock(guard) };
    }

    fn verify(&self, _: u64) -> Result<(), String> {
        free(!self.0.is_locked())
    }
}

/// A mutex around nothing, that hands out a guard.
macro_rules! guarded {
    ($name:ident, $mutex:ty, $lock:expr, $is_free:expr) => {
        #[doc = concat!("`", stringify!($mutex), "`.")]
        pub struct $name($mutex);

        impl Subject for $name {
            const EXCLUSIVE: bool = true;
            type Own<'a> = ();

            fn new(_: CpuRange) -> Self {
                $name(<$mutex>::new(()))
            }

            fn own(&self) {}

            #[inline(always)]
            fn operate(&self, (): &mut (), section: impl FnOnce()) {
                let guard = $lock(&self.0);
                section();
                drop(guard);
            }

            fn verify(&self, _: u64) -> Result<(), String> {
                free($is_free(&self.0))
            }
        }
    };
}

guarded!(
    Std,
    std::sync::Mutex<()>,
    std::sync::Mutex::lock,
    |mutex: &std::sync::Mutex<()>| mutex.try_lock().is_ok()
);
guarded!(
    Spin,
    spin::mutex::SpinMutex<()>,
    spin::mutex::SpinMutex::lock,
    |mutex: &spin::mutex::SpinMutex<()>| !mutex.is_locked()
);
guarded!(
    SpinTicket,
    spin::mutex::TicketMutex<()>,
    spin::mutex::TicketMutex::lock,
    |mutex: &spin::mutex::TicketMutex<()>| !mutex.is_locked()
);
