//! The workloads that start programs do the work of the real ones, notice errors in it, and leave
//! nothing behind.

mod build;
mod exim;
mod memory;
use crate::plain;
