//! Results as one page of HTML that needs nothing else: no network, no other file, and
//! for reading and printing no script.
//!
//! [`Source`] reads a file, [`Page`] is what is to be said about all of them, the verdict
//! first, and [`Page::html`] says it. Text from files is data and never markup.

mod flame;
mod html;
mod page;
mod plot;
mod source;

pub use page::Page;
pub use source::{Band, Finding, Paired, Reproduction, Side, Source};
