//! What the sources of the repository are held to: the layers of their modules, and their words.

mod layers;
#[path = "../support/mod.rs"]
mod support;
mod words;
