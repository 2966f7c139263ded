//! The watched processes: their threads and their executable memory.

mod family;
mod image;
mod scan;
mod used;

pub(crate) use family::{Family, Process};
pub(crate) use image::{Files, Image, Place, is_system};
pub(crate) use scan::{numbers_are_the_kernels, threads};
pub(crate) use used::Used;
