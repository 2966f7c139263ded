//! The kernel's name for itself.

/// The machine's name.
pub const NODE: &str = "scalevm";
/// Which Linux this is like: old C libraries refuse kernels that they take for too old.
pub const RELEASE: &str = "6.1.0-scalevm";
/// Which kernel this is.
pub const VERSION: &str = concat!("scalevm ", env!("CARGO_PKG_VERSION"));
