//! Translation hardware in software, for machines that have none: an exact TLB and the
//! page walk of x86-64.

mod oracle;
mod tlb;
mod walk;

pub use oracle::Oracle;
pub use tlb::{Entry, SETS, Tlb, WAYS};
pub use walk::walk;
