//! A swap account, chosen at run time.

use crate::freebsd::swap::{AtomicSwap, MutexSwap};
use crate::linux::CommittedAs;
use machine::Machine;
use vm::Error;
use vm::system::{Extent, Part, Reservation};

/// The account of an [`AnySwap`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Account {
    /// FreeBSD's counters under mutexes ([`MutexSwap`]).
    Mutex,
    /// FreeBSD's two atomic counters ([`AtomicSwap`]).
    Atomic,
    /// Linux's counter ([`CommittedAs`]) in front of `vm`'s own account.
    CommittedAs,
    /// `vm`'s own account.
    #[default]
    Own,
}

/// A baseline account or `Own`, chosen when it is made.
pub enum AnySwap<M: Machine, Own: Reservation<M>> {
    /// For [`Account::Mutex`].
    Mutex(MutexSwap<M>),
    /// For [`Account::Atomic`].
    Atomic(AtomicSwap<M>),
    /// For [`Account::CommittedAs`].
    CommittedAs(CommittedAs<M, Own>),
    /// For [`Account::Own`].
    Own(Own),
}

macro_rules! dispatch {
    ($any:expr, $account:ident => $call:expr) => {
        match $any {
            AnySwap::Mutex($account) => $call,
            AnySwap::Atomic($account) => $call,
            AnySwap::CommittedAs($account) => $call,
            AnySwap::Own($account) => $call,
        }
    };
}

impl<M: Machine, Own: Reservation<M>> Part<M> for AnySwap<M, Own> {
    type Config = Account;

    fn new(account: &Account, extent: Extent) -> Result<Self, Error> {
        Ok(match account {
            Account::Mutex => AnySwap::Mutex(MutexSwap::new(&(), extent)?),
            Account::Atomic => AnySwap::Atomic(AtomicSwap::new(&(), extent)?),
            Account::CommittedAs => {
                AnySwap::CommittedAs(CommittedAs::new(&Default::default(), extent)?)
            }
            Account::Own => AnySwap::Own(Own::new(&Own::Config::default(), extent)?),
        })
    }

    fn label(&self) {
        dispatch!(self, account => account.label());
    }
}

impl<M: Machine, Own: Reservation<M>> Reservation<M> for AnySwap<M, Own> {
    #[inline]
    fn reserve(&self, pages: u64) -> bool {
        dispatch!(self, account => account.reserve(pages))
    }

    #[inline]
    fn release(&self, pages: u64) {
        dispatch!(self, account => account.release(pages))
    }

    fn reserved(&self) -> u64 {
        dispatch!(self, account => account.reserved())
    }
}
