//! `Debug` of what other CPUs may be changing.

use crate::conformance::Smallest;
use crate::soft::{Oracle, Tlb};
use crate::{Anchor, Contexts, NativeCell};

/// Gives types a `Debug` that says their name and reads nothing: `opaque_debug! { [M: Machine]
/// Lock<M>; }`.
#[doc(hidden)]
#[macro_export]
macro_rules! opaque_debug {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> ::core::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.debug_struct(::core::any::type_name::<Self>()).finish_non_exhaustive()
            }
        }
    )*};
}

opaque_debug! {
    [] Anchor;
    [T] NativeCell<T>;
    [] Oracle;
    [M: Contexts] Smallest<M>;
    [] Tlb;
    [] crate::NativePair;
}
