//! Memory objects, and the spaces that map them.

mod attachments;
mod failures;
mod files;
mod pages;
mod races;
mod sharers;
