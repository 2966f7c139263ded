//! The machine's memory and what else a kernel has to give.

mod embedding;
mod frames;
