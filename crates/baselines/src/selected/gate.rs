//! A gate, chosen at run time.

use crate::freebsd::{Entries, OneLock, SxMap};
use crate::linux::{Fixes, Linux, Mutexes, PageState, Rwsems, SpinLocks};
use crate::openbsd::Uvm;
use machine::{Frame, Machine};
use vm::Error;
use vm::system::{Change, Extent, Gate, Mapping, Op, Part, Seldom};

/// The gate of an [`AnyGate`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gates {
    /// No gate: the locks of the slots suffice.
    #[default]
    Slots,
    /// FreeBSD's locks of a space, as `sync`'s own kinds ([`OneLock`]).
    OneLock,
    /// FreeBSD's own locks of a space ([`SxMap`]).
    SxMap,
    /// FreeBSD 14's entries with objects ([`Entries`]).
    FreeBsd,
    /// OpenBSD's entries with amaps ([`Uvm`]).
    OpenBsd,
    LinuxSpinLocks(Fixes),
    LinuxMutexes(Fixes),
    LinuxRwsems(Fixes),
}

/// A page's data, as a gate knows it.
trait PageOf<P> {
    fn of(&self) -> &P;
}

impl<M: Machine> PageOf<()> for PageState<M> {
    fn of(&self) -> &() {
        &()
    }
}

impl<M: Machine> PageOf<PageState<M>> for PageState<M> {
    fn of(&self) -> &PageState<M> {
        self
    }
}

/// Spaces, objects and guards belong to one VM, so they are of one kind.
#[cold]
#[inline(never)]
#[track_caller]
fn another_vms() -> ! {
    panic!("the gate of a VM meets the space of another VM, of another kind");
}

/// The gates, each with its value of [`Gates`].
macro_rules! gates {
    ($($kind:ident: $gate:ty = $choice:pat => $config:expr;)*) => {
        /// A gate, chosen when the VM is made.
        pub enum AnyGate<M: Machine> {
            /// For [`Gates::Slots`].
            Slots,
            $(#[doc = concat!("See [`Gates::", stringify!($kind), "`].")] $kind($gate),)*
        }

        /// The state of a space.
        pub enum AnySpace<M: Machine> {
            /// For [`Gates::Slots`].
            Slots,
            $(#[doc = concat!("See [`Gates::", stringify!($kind), "`].")]
            $kind(<$gate as Gate<M>>::Space),)*
        }

        /// The state of an object.
        pub enum AnyObject<M: Machine> {
            /// For [`Gates::Slots`].
            Slots,
            $(#[doc = concat!("See [`Gates::", stringify!($kind), "`].")]
            $kind(<$gate as Gate<M>>::Object),)*
        }

        impl<M: Machine> Clone for AnyObject<M> {
            #[allow(clippy::clone_on_copy, clippy::unit_arg)] // of gates without such data
            fn clone(&self) -> Self {
                match self {
                    AnyObject::Slots => AnyObject::Slots,
                    $(AnyObject::$kind(object) => AnyObject::$kind(object.clone()),)*
                }
            }
        }

        /// Held by an operation.
        #[must_use = "the locks are released when this is dropped"]
        pub enum AnyGuard<'a, M: Machine> {
            $(#[doc = concat!("See [`Gates::", stringify!($kind), "`].")]
            $kind(<$gate as Gate<M>>::Guard<'a>),)*
        }

        /// Held while page tables change.
        #[must_use = "the lock is released when this is dropped"]
        pub enum AnyPmap<'a, M: Machine> {
            $(#[doc = concat!("See [`Gates::", stringify!($kind), "`].")]
            $kind(<$gate as Gate<M>>::Pmap<'a>),)*
        }

        impl<M: Machine> Part<M> for AnyGate<M> {
            type Config = Gates;

            fn new(gate: &Gates, extent: Extent) -> Result<Self, Error> {
                Ok(match gate {
                    Gates::Slots => AnyGate::Slots,
                    $($choice => AnyGate::$kind(Part::<M>::new($config, extent)?),)*
                })
            }

            fn is_silent(&self) -> bool {
                matches!(self, AnyGate::Slots)
            }
        }

        /// A page's data is Linux's, unused by the others.
        impl<M: Machine> Gate<M> for AnyGate<M> {
            type Space = AnySpace<M>;
            type Page = PageState<M>;
            type Object = AnyObject<M>;
            type Guard<'a> = Seldom<AnyGuard<'a, M>>;
            type Pmap<'a> = Seldom<AnyPmap<'a, M>>;

            fn new_space(&self) -> AnySpace<M> {
                match self {
                    AnyGate::Slots => AnySpace::Slots,
                    $(AnyGate::$kind(gate) => AnySpace::$kind(Gate::<M>::new_space(gate)),)*
                }
            }

            #[allow(clippy::unit_arg)] // of gates without such data
            fn new_object(&self) -> AnyObject<M> {
                match self {
                    AnyGate::Slots => AnyObject::Slots,
                    $(AnyGate::$kind(gate) => AnyObject::$kind(Gate::<M>::new_object(gate)),)*
                }
            }

            fn label_space(space: &AnySpace<M>) {
                match space {
                    AnySpace::Slots => {}
                    $(AnySpace::$kind(space) => <$gate as Gate<M>>::label_space(space),)*
                }
            }

            #[inline(always)]
            #[track_caller]
            fn begin<'a>(&'a self, space: &'a AnySpace<M>, op: Op) -> Self::Guard<'a> {
                match self {
                    AnyGate::Slots => Seldom::NONE,
                    _ => self.begin_at(space, op),
                }
            }

            #[inline(always)]
            #[track_caller]
            fn report<'a>(
                &'a self,
                space: &'a AnySpace<M>,
                guard: &mut Self::Guard<'a>,
                change: Change<'_, M, Self>,
            ) {
                match self {
                    // These gates keep no records.
                    AnyGate::Slots | AnyGate::OneLock(_) | AnyGate::SxMap(_) => {}
                    _ => self.report_at(space, guard, change),
                }
            }

            #[inline(always)]
            #[track_caller]
            fn lock_pmap<'a>(&self, space: &'a AnySpace<M>) -> Self::Pmap<'a> {
                match self {
                    AnyGate::Slots => Seldom::NONE,
                    _ => self.lock_pmap_at(space),
                }
            }

            #[track_caller]
            fn try_lock_pmap<'a>(&self, space: &'a AnySpace<M>) -> Option<Self::Pmap<'a>> {
                Some(Seldom::some(match (self, space) {
                    (AnyGate::Slots, _) => return Some(Seldom::NONE),
                    $((AnyGate::$kind(gate), AnySpace::$kind(space)) => {
                        AnyPmap::$kind(Gate::<M>::try_lock_pmap(gate, space)?)
                    })*
                    _ => another_vms(),
                }))
            }

            fn walk(&self, frame: Frame, page: &PageState<M>) {
                match self {
                    AnyGate::Slots => {}
                    $(AnyGate::$kind(gate) => Gate::<M>::walk(gate, frame, page.of()),)*
                }
            }
        }

        /// The calls of gates that do something.
        impl<M: Machine> AnyGate<M> {
            #[inline(never)]
            #[track_caller]
            fn begin_at<'a>(
                &'a self,
                space: &'a AnySpace<M>,
                op: Op,
            ) -> Seldom<AnyGuard<'a, M>> {
                match (self, space) {
                    $((AnyGate::$kind(gate), AnySpace::$kind(space)) => {
                        Seldom::some(AnyGuard::$kind(Gate::<M>::begin(gate, space, op)))
                    })*
                    _ => another_vms(),
                }
            }

            #[inline(never)]
            #[track_caller]
            fn report_at<'a>(
                &'a self,
                space: &'a AnySpace<M>,
                guard: &mut Seldom<AnyGuard<'a, M>>,
                change: Change<'_, M, Self>,
            ) {
                match (self, space) {
                    $((AnyGate::$kind(gate), AnySpace::$kind(space)) => {
                        if guard.is_none() {
                            **guard = Some(AnyGuard::$kind(Default::default()));
                        }
                        let Some(AnyGuard::$kind(guard)) = &mut **guard else {
                            another_vms();
                        };
                        let change = match change {
                            Change::Expected(range) => Change::Expected(range),
                            Change::Unmapping(range) => Change::Unmapping(range),
                            Change::Unmapped(range) => Change::Unmapped(range),
                            Change::Mapped(range, Mapping { prot, shared, object }) => {
                                let object = object.map(|(object, first)| match object {
                                    AnyObject::$kind(object) => (object, first),
                                    _ => another_vms(),
                                });
                                Change::Mapped(range, Mapping { prot, shared, object })
                            }
                            Change::Protected(range, prot) => Change::Protected(range, prot),
                            Change::Forked(AnySpace::$kind(child)) => Change::Forked(child),
                            Change::Forked(_) => another_vms(),
                            Change::Faulted(frame, page) => Change::Faulted(frame, page.of()),
                        };
                        Gate::<M>::report(gate, space, guard, change);
                    })*
                    _ => another_vms(),
                }
            }

            #[inline(never)]
            #[track_caller]
            fn lock_pmap_at<'a>(&self, space: &'a AnySpace<M>) -> Seldom<AnyPmap<'a, M>> {
                Seldom::some(match (self, space) {
                    $((AnyGate::$kind(gate), AnySpace::$kind(space)) => {
                        AnyPmap::$kind(Gate::<M>::lock_pmap(gate, space))
                    })*
                    _ => another_vms(),
                })
            }
        }
    };
}

gates! {
    OneLock: OneLock<M> = Gates::OneLock => &();
    SxMap: SxMap<M> = Gates::SxMap => &();
    FreeBsd: Entries = Gates::FreeBsd => &();
    OpenBsd: Uvm<M> = Gates::OpenBsd => &();
    LinuxSpinLocks: Linux<M, SpinLocks> = Gates::LinuxSpinLocks(fixes) => fixes;
    LinuxMutexes: Linux<M, Mutexes> = Gates::LinuxMutexes(fixes) => fixes;
    LinuxRwsems: Linux<M, Rwsems> = Gates::LinuxRwsems(fixes) => fixes;
}
