//! Two words that are exchanged as one, on a real machine.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod exchange;
#[cfg(any(test, miri, not(target_arch = "x86_64")))]
mod locked;

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub use exchange::NativePair;
#[cfg(any(miri, not(target_arch = "x86_64")))]
pub use locked::LockedPair as NativePair;
