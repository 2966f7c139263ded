//! Results kept in a directory, so that there is something to compare with.
//!
//! A store is a directory of JSON-lines files, one for each invocation that measured; the names begin with the time and so sort
//! as they were made. Files are only ever added, and lines only ever appended: whatever was finished when an invocation died
//! stays. Two invocations at once write two files. Reading takes the lines that [`record`](crate::record) knows and skips what
//! else of ours lies there.

mod read;
mod write;

pub use read::{File, Store, read};
pub use write::{StoreError, Writer};

/// How the names of a store's files end.
pub const EXTENSION: &str = "jsonl";
