//! Files.

use super::Model;
use super::answer::{Answer, undefined};
use crate::address::PAGE;
use crate::outcome::Outcome;
use crate::step::{FILE_BYTES, Transfer};
use std::rc::Rc;

impl Model {
    /// Removes pages beyond the new end, including private copies of them.
    pub(super) fn truncate(&mut self, file: u8, bytes: u64) -> Answer {
        if bytes > FILE_BYTES {
            return undefined("how large a file may be");
        }
        let object = usize::from(file);
        Rc::make_mut(&mut self.objects[object].bytes).resize(bytes as usize, 0);
        let end = bytes.div_ceil(PAGE);
        for process in self.processes.values_mut().map(Rc::make_mut) {
            for page in process.pages.values_mut() {
                if page.attributes.object == Some(object) && page.offset >= end {
                    page.forget();
                }
            }
        }
        Ok(Outcome::Done)
    }

    pub(super) fn read(&mut self, transfer: Transfer) -> Answer {
        let Transfer {
            file,
            offset,
            bytes,
        } = transfer;
        let content = &self.objects[usize::from(file)].bytes;
        let content = content.iter().skip(offset as usize).take(bytes as usize);
        Ok(Outcome::Bytes(content.copied().collect()))
    }

    pub(super) fn write(&mut self, transfer: Transfer, byte: u8) -> Answer {
        let Transfer {
            file,
            offset,
            bytes,
        } = transfer;
        if bytes > 0 {
            let content = vec![byte; bytes as usize];
            self.objects[usize::from(file)].write(offset, &content);
        }
        Ok(Outcome::Value(bytes))
    }
}
