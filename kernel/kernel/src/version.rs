//! The kernel's name for itself.

/// The machine's name.
pub const NODE: &str = "scalevm";
/// The version of Linux that it reports, since C libraries refuse kernels that seem too old.
pub const RELEASE: &str = "6.1.0-scalevm";
/// The kernel's own version.
pub const VERSION: &str = concat!("scalevm ", env!("CARGO_PKG_VERSION"));
