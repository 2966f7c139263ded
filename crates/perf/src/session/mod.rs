//! A recording under way: what is opened, and the thread that reads it.

mod opened;
mod order;
mod reader;

pub(crate) use opened::{Opened, own_thread};
pub(crate) use reader::{Reader, now};
