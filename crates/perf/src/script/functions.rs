//! The functions of the frames of a script, by number.

use super::line;
use crate::account::{Frame, Stack};
use crate::event::{Chain, Mapping};
use crate::symbols::{Function, Named, module, plain, unknown};
use crate::tasks::{Files, Image, Place, is_system};
use perf_event_open_sys::bindings as sys;
use std::collections::HashMap;

/// Bytes of a made-up address space that a function takes: a caller's address is one less than its
/// return address, and must be in the same function.
const SIZE: u64 = 16;

/// All functions. Each stands at an address of its own, so that stacks of names go where stacks of
/// addresses do.
#[derive(Debug, Default)]
pub(super) struct Functions {
    known: Vec<Function>,
    numbers: HashMap<(bool, String, String), u64>,
}

impl Functions {
    /// The executable memory of every process: all of the address space, as one file.
    pub fn image(files: &mut Files) -> Image {
        let mut image = Image::new();
        let mapping = Mapping {
            start: 0,
            end: u64::MAX,
            offset: 0,
            path: "//script".to_owned(),
        };
        image.map(&mapping, files);
        image
    }

    /// The stack of `frames`, from the leaf.
    pub fn chain(&mut self, frames: &[line::Frame<'_>]) -> Chain {
        let mut addresses = Vec::with_capacity(frames.len() + 2);
        let mut part = None;
        for frame in frames {
            if part != Some(frame.is_kernel) {
                part = Some(frame.is_kernel);
                addresses.push(match frame.is_kernel {
                    true => sys::PERF_CONTEXT_KERNEL,
                    false => sys::PERF_CONTEXT_USER,
                });
            }
            addresses.push(self.address(frame));
        }
        Chain {
            addresses: addresses.into(),
            ..Chain::default()
        }
    }

    /// The stack with its functions.
    pub fn named(&self, stack: Stack) -> Named {
        let mut named = Named {
            process: stack.name,
            thread: stack.thread,
            ..Named::default()
        };
        for frame in stack.frames {
            match frame {
                Frame::Kernel(address) => named.kernel.push(self.at(address).name),
                Frame::User(Place { offset, .. }) => named.user.push(self.at(offset)),
                Frame::Nowhere | Frame::Cut => named.user.push(unknown()),
            }
        }
        named
    }

    fn at(&self, address: u64) -> Function {
        let number = (address / SIZE) as usize;
        self.known.get(number).cloned().unwrap_or_else(unknown)
    }

    fn address(&mut self, frame: &line::Frame<'_>) -> u64 {
        let name = frame.function.unwrap_or_default();
        let key = (frame.is_kernel, name.to_owned(), frame.file.to_owned());
        let next = self.known.len() as u64;
        let number = *self.numbers.entry(key).or_insert_with(|| {
            self.known.push(function(frame));
            next
        });
        number * SIZE + SIZE / 2
    }
}

fn function(frame: &line::Frame<'_>) -> Function {
    let system = is_system(frame.file);
    match frame.function {
        Some(name) if frame.is_kernel => Function {
            name: plain(name).to_owned(),
            ..Function::default()
        },
        Some(name) => Function {
            name: rustc_demangle::demangle(without_version(name)).to_string(),
            system,
            ..Function::default()
        },
        None if frame.is_kernel => Function {
            name: "[kernel]".to_owned(),
            ..Function::default()
        },
        None if frame.file.is_empty() || frame.file == "[unknown]" => unknown(),
        None => Function {
            system,
            ..module(frame.file)
        },
    }
}

/// A name without the version of its symbol: `clock_nanosleep@GLIBC_2.2.5`.
fn without_version(name: &str) -> &str {
    name.split_once('@').map_or(name, |(name, _)| name)
}
