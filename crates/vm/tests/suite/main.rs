//! The VM on hosted memory: the effect of each operation, the state after it fails, and the
//! guarantees when CPUs do several at once.
//!
//! What calls mean to a task is in the model of `oracle`, and played on the VM by `check oracle`.
//! Here are the states inside, accounts, failures and races. It is one program, since each has a
//! copy of the whole VM in it. Tests that explore schedules (models), count instructions or watch
//! the order of locks have programs of their own.

mod fences;
mod limits;
mod object;
mod pmap;
mod reclaim;
mod space;
mod superpages;
mod system;

// Shared parts.
mod dice;
mod failing;
mod refusing;
mod store;
#[path = "../swapping/mod.rs"]
mod swapping;
mod world;
