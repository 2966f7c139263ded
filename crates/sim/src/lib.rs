//! A deterministic many-core machine in virtual time.
//!
//! [`profile`] describes the computer that is simulated: its shape and what each thing it does
//! costs, every number with its source.

pub mod profile;
