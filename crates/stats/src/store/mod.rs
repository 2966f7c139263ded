//! Results kept in a directory, to compare later ones with.
//!
//! A store is a directory of JSON-lines files, one per invocation that measured; names begin with
//! the time, so they sort in order of creation. Files are only ever added, and lines only ever
//! appended: if an invocation dies, its finished runs survive. Two concurrent invocations write two
//! files. Reading takes the lines that [`record`](crate::record) knows and skips the command's
//! other lines.

mod read;
mod write;

pub use read::{File, Store, read};
pub use write::{StoreError, Writer};

/// The file name extension of a store's files.
pub const EXTENSION: &str = "jsonl";
