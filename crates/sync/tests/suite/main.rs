//! Locks, epochs and counters on hosted threads, and all interleavings of their protocols.

mod counter;
mod epoch;
mod hazard;
mod locks;
mod model_counter;
mod model_epoch;
mod model_freebsd_rw;
mod model_hazard;
mod model_obm;
mod model_rwlock;
mod model_rwsem;
mod model_sleepable;
mod model_spin;
mod model_spin_mutants;
mod model_turnstile;
mod parking_hosted;

// Shared parts.
mod model;
mod parking;
