//! Flame graphs: stacks as frames whose widths are their shares, callers above callees.
//!
//! `profile::flame` draws such graphs as files of their own. Here they are part of a page
//! that is also read in the dark, by keyboard and on paper, so they are drawn anew, with
//! the page's colours and its one script.

mod draw;
mod functions;
mod tree;

pub(crate) use draw::{Shows, svg};
pub(crate) use functions::functions;
pub(crate) use tree::{Frame, differences, frames};
