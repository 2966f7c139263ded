//! What can be mapped by several processes: files and shared anonymous memory.

use super::page::zero;
use crate::address::PAGE;
use crate::outcome::Core;
use std::collections::BTreeMap;

/// A file, or what an anonymous shared mapping shows.
#[derive(Clone, Default, PartialEq)]
pub struct Object {
    /// All of it.
    pub bytes: Vec<u8>,
    /// Pages of shared memory that are not just [`Core::Out`].
    pub core: BTreeMap<u64, Core>,
}

impl Object {
    /// Shared memory of so many pages.
    pub fn of_pages(pages: u64) -> Self {
        Object {
            bytes: vec![0; (pages * PAGE) as usize],
            core: BTreeMap::new(),
        }
    }

    /// Pages, the last one perhaps in part.
    pub fn pages(&self) -> u64 {
        (self.bytes.len() as u64).div_ceil(PAGE)
    }

    /// A page of it, zero behind the end.
    pub fn page(&self, page: u64) -> Vec<u8> {
        let bytes = self.bytes.chunks(PAGE as usize).nth(page as usize);
        let mut content = bytes.unwrap_or_default().to_vec();
        content.resize(PAGE as usize, 0);
        content
    }

    /// Writes, and becomes longer if need be.
    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        let (start, end) = (at as usize, at as usize + bytes.len());
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes[start..end].copy_from_slice(bytes);
    }

    /// Makes a page zero; what it has of it beyond its end stays nothing.
    pub fn punch(&mut self, page: u64) {
        let content = self.bytes.chunks_mut(PAGE as usize).nth(page as usize);
        if let Some(content) = content {
            content.copy_from_slice(&zero()[..content.len()]);
        }
        self.core.remove(&page);
    }
}
