//! What the sources of the repository are held to: the layers of their modules, and their words.

mod layers;
mod words;
