//! A design of delayed invalidation, chosen at run time.

use crate::freebsd::{Di, EpochDi, LocklessDi, Pvh};
use machine::{Frame, Machine};
use vm::Error;
use vm::system::{Extent, Invalidation, Part};

/// The design of an [`AnyInvalidation`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Design {
    /// FreeBSD 10's reader/writer lock ([`Pvh`]).
    Pvh,
    /// FreeBSD's list under one mutex ([`Di`]).
    Di,
    /// FreeBSD's list without a lock ([`LocklessDi`]).
    LocklessDi,
    /// Epochs, the experiment of case study 000 ([`EpochDi`]).
    Epoch,
    /// `vm`'s own design.
    #[default]
    Own,
}

/// A baseline or `Own`, chosen when it is made. The baselines keep nothing in a page, so a page's
/// state is `Own`'s, unused by the others.
pub enum AnyInvalidation<M: Machine, Own: Invalidation<M>> {
    /// For [`Design::Pvh`].
    Pvh(Pvh<M>),
    /// For [`Design::Di`].
    Di(Di<M>),
    /// For [`Design::LocklessDi`].
    LocklessDi(LocklessDi<M>),
    /// For [`Design::Epoch`].
    Epoch(EpochDi<M>),
    /// For [`Design::Own`].
    Own(Own),
}

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $kind:ident) => {
        $(#[$doc])*
        pub enum $name<'a, M: Machine, Own: Invalidation<M>> {
            /// For [`Design::Pvh`].
            Pvh(<Pvh<M> as Invalidation<M>>::$kind<'a>),
            /// For [`Design::Di`].
            Di(<Di<M> as Invalidation<M>>::$kind<'a>),
            /// For [`Design::LocklessDi`].
            LocklessDi(<LocklessDi<M> as Invalidation<M>>::$kind<'a>),
            /// For [`Design::Epoch`].
            Epoch(<EpochDi<M> as Invalidation<M>>::$kind<'a>),
            /// For [`Design::Own`].
            Own(Own::$kind<'a>),
        }
    };
}

guard!(
    /// An open block of any design.
    #[must_use = "the block ends when this is dropped"]
    AnyBlock, Block
);
guard!(
    /// Held while a mapping is made, or while mappings are removed by the reverse map.
    AnyHeld, Held
);

impl<M: Machine, Own: Invalidation<M>> Default for AnyHeld<'_, M, Own> {
    fn default() -> Self {
        AnyHeld::Own(Own::Held::default())
    }
}

/// Makes a guard of the design in use.
macro_rules! open {
    ($any:expr, $guard:ident, $method:ident) => {
        match $any {
            AnyInvalidation::Pvh(design) => $guard::Pvh(design.$method()),
            AnyInvalidation::Di(design) => $guard::Di(design.$method()),
            AnyInvalidation::LocklessDi(design) => $guard::LocklessDi(design.$method()),
            AnyInvalidation::Epoch(design) => $guard::Epoch(design.$method()),
            AnyInvalidation::Own(design) => $guard::Own(design.$method()),
        }
    };
}

/// Passes a guard back to the design it came from.
macro_rules! pass {
    ($any:expr, $guard:ident($given:expr), $method:ident, $frame:expr, $page:expr) => {
        match ($any, $given) {
            (AnyInvalidation::Pvh(d), $guard::Pvh(given)) => d.$method(given, $frame, &()),
            (AnyInvalidation::Di(d), $guard::Di(given)) => d.$method(given, $frame, &()),
            (AnyInvalidation::LocklessDi(d), $guard::LocklessDi(given)) => {
                d.$method(given, $frame, &())
            }
            (AnyInvalidation::Epoch(d), $guard::Epoch(given)) => d.$method(given, $frame, &()),
            (AnyInvalidation::Own(d), $guard::Own(given)) => d.$method(given, $frame, $page),
            _ => another_designs_guard(),
        }
    };
}

#[cold]
#[inline(never)]
fn another_designs_guard() -> ! {
    panic!("the guard was opened by another subsystem, of another design");
}

impl<M: Machine, Own: Invalidation<M>> Part<M> for AnyInvalidation<M, Own> {
    type Config = Design;

    fn new(design: &Design, extent: Extent) -> Result<Self, Error> {
        Ok(match design {
            Design::Pvh => AnyInvalidation::Pvh(Pvh::new(&(), extent)?),
            Design::Di => AnyInvalidation::Di(Di::new(&(), extent)?),
            Design::LocklessDi => AnyInvalidation::LocklessDi(LocklessDi::new(&(), extent)?),
            Design::Epoch => AnyInvalidation::Epoch(EpochDi::new(&(), extent)?),
            Design::Own => AnyInvalidation::Own(Own::new(&Own::Config::default(), extent)?),
        })
    }

    #[inline]
    fn is_silent(&self) -> bool {
        matches!(self, AnyInvalidation::Own(own) if own.is_silent())
    }

    fn label(&self) {
        match self {
            AnyInvalidation::Pvh(design) => design.label(),
            AnyInvalidation::Di(design) => design.label(),
            AnyInvalidation::LocklessDi(design) => design.label(),
            AnyInvalidation::Epoch(design) => design.label(),
            AnyInvalidation::Own(design) => design.label(),
        }
    }
}

// SAFETY: each design keeps the contract, and all calls of one value go to one design.
unsafe impl<M: Machine, Own: Invalidation<M>> Invalidation<M> for AnyInvalidation<M, Own> {
    type Block<'a> = AnyBlock<'a, M, Own>;
    type Held<'a> = AnyHeld<'a, M, Own>;
    type Page = Own::Page;

    #[inline]
    fn may_sleep(&self) -> bool {
        match self {
            AnyInvalidation::Pvh(design) => design.may_sleep(),
            AnyInvalidation::Di(design) => design.may_sleep(),
            AnyInvalidation::LocklessDi(design) => design.may_sleep(),
            AnyInvalidation::Epoch(design) => design.may_sleep(),
            AnyInvalidation::Own(design) => design.may_sleep(),
        }
    }

    #[inline]
    fn begin(&self) -> Self::Block<'_> {
        open!(self, AnyBlock, begin)
    }

    #[inline]
    fn note(&self, block: &Self::Block<'_>, frame: Frame, page: &Own::Page) {
        pass!(self, AnyBlock(block), note, frame, page)
    }

    #[inline]
    fn enter(&self) -> Self::Held<'_> {
        open!(self, AnyHeld, enter)
    }

    #[inline]
    fn reverse(&self) -> Self::Held<'_> {
        open!(self, AnyHeld, reverse)
    }

    fn wait(&self, reverse: &Self::Held<'_>, frame: Frame, page: &Own::Page) {
        pass!(self, AnyHeld(reverse), wait, frame, page)
    }
}
