//! The watched processes: their threads and their executable memory. The names of all.

mod cgroup;
mod family;
mod image;
mod names;
mod scan;
mod used;
mod withheld;

pub use cgroup::Cgroup;
pub(crate) use family::{Family, Process};
pub(crate) use image::{Files, Image, Place, Renumbered, is_system};
pub(crate) use names::Names;
pub(crate) use scan::{Found, descendants, leader, name, processes, threads};
pub(crate) use used::Used;
pub(crate) use withheld::Withheld;
