//! Objects that several processes may map: files and shared anonymous memory.

use super::page::zero;
use crate::address::PAGE;
use crate::outcome::Core;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A file, or the memory of an anonymous shared mapping.
#[derive(Clone, Default, PartialEq)]
pub struct Object {
    /// All of its bytes; shared with older copies of the model until they change.
    pub bytes: Rc<Vec<u8>>,
    /// Pages of shared memory that are not simply [`Core::Out`].
    pub core: BTreeMap<u64, Core>,
}

impl Object {
    /// Shared memory of this many pages.
    pub fn of_pages(pages: u64) -> Self {
        Object {
            bytes: Rc::new(vec![0; (pages * PAGE) as usize]),
            core: BTreeMap::new(),
        }
    }

    /// The number of pages, including a partial last one.
    pub fn pages(&self) -> u64 {
        (self.bytes.len() as u64).div_ceil(PAGE)
    }

    /// A page of the object, zero beyond the end.
    pub fn page(&self, page: u64) -> Vec<u8> {
        let bytes = self.bytes.chunks(PAGE as usize).nth(page as usize);
        let mut content = bytes.unwrap_or_default().to_vec();
        content.resize(PAGE as usize, 0);
        content
    }

    /// Writes, extending the object if necessary.
    pub fn write(&mut self, at: u64, bytes: &[u8]) {
        let (start, end) = (at as usize, at as usize + bytes.len());
        let content = Rc::make_mut(&mut self.bytes);
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(bytes);
    }

    /// Makes a page zero; the object's length stays.
    pub fn punch(&mut self, page: u64) {
        let bytes = Rc::make_mut(&mut self.bytes);
        let content = bytes.chunks_mut(PAGE as usize).nth(page as usize);
        if let Some(content) = content {
            content.copy_from_slice(&zero()[..content.len()]);
        }
        self.core.remove(&page);
    }
}
