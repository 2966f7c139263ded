//! A recording in progress: its open events, and the thread that reads them.

mod budget;
mod cpus;
mod descriptors;
mod opened;
mod order;
mod pace;
mod reader;

pub(crate) use cpus::{candidates, is_absent};
pub(crate) use opened::{Opened, own_thread};
pub(crate) use order::Order;
pub(crate) use reader::{Reader, SETTLED, Signals, hurry, now};
