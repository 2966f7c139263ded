//! Flame graphs: stacks as frames whose widths are their shares, callers above callees.
//!
//! `profile::flame` draws such graphs as files of their own. Those on the page must also work in
//! dark mode, by keyboard and on paper, so they are drawn separately, with the page's colours and
//! script.

mod draw;
mod functions;
mod tree;

pub(crate) use draw::{Shows, svg};
pub(crate) use functions::functions;
pub(crate) use tree::{Frame, differences, frames};
