//! The processes that are watched: who belongs to them, and what they have mapped.

mod family;
mod image;
mod scan;

pub(crate) use family::{Family, Process};
pub(crate) use image::{Files, Image, Place, is_system};
pub(crate) use scan::threads;
