//! Results as one HTML page that needs nothing else: no network and no other file; reading and
//! printing it needs no script.
//!
//! [`Source`] reads a file, [`Page`] draws the conclusions from all of them, the verdict first, and
//! [`Page::html`] writes them down. Text from files is data and never markup.

mod flame;
mod html;
mod page;
mod plot;
mod source;

pub use page::Page;
pub use source::{Band, Finding, Paired, Reproduction, Side, Source};
