//! Stacks, each stored once.

use super::StackId;
use crate::event::Chain;
use crate::tasks::{Files, Image, Place, Process};
use crate::unwind::{Callers, Unwinder, Word};
use perf_event_open_sys::bindings as sys;
use std::collections::HashMap;

/// Chains remembered at most: each start of a program lies at new addresses.
const REMEMBERED: usize = 1 << 16;

/// The address in place of what was cut from a stack; it is none of the kernel's marks.
const CUT: u64 = u64::MAX;

/// Where a frame lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Frame {
    /// An address of the kernel.
    Kernel(u64),
    /// A place in a program or library.
    User(Place),
    /// An address outside everything known.
    Nowhere,
    /// Callers that the kernel did not deliver, as there are too many.
    Cut,
}

/// The names of a process and its thread, and frames, from the leaf.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stack {
    pub name: String,
    /// The thread's name, if it has one of its own.
    pub thread: Option<String>,
    pub frames: Vec<Frame>,
}

/// Numbers stacks.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    stacks: Vec<Stack>,
    numbers: HashMap<Stack, StackId>,
    /// Recent stacks, by image, names and addresses: most stacks recur.
    recent: HashMap<(u64, [u64; 2], Vec<u64>), StackId>,
    names: HashMap<String, u64>,
    unwinder: Unwinder,
}

impl Interner {
    /// The number of the stack of `chain` in `process`, whose image uses the numbers of `files`;
    /// `thread` is the thread's name if it has one of its own.
    pub fn intern(
        &mut self,
        process: &Process,
        thread: Option<&str>,
        files: &Files,
        chain: Chain,
    ) -> StackId {
        let addresses = self.with_callers(&process.image, files, chain);
        let names = [&process.name, thread.unwrap_or_default()].map(|name| self.name(name));
        let key = (process.image.id, names, addresses);
        if let Some(&known) = self.recent.get(&key) {
            return known;
        }
        let stack = Stack {
            name: process.name.clone(),
            thread: thread.map(str::to_owned),
            frames: frames(process, &key.2),
        };
        let number = self.number(stack);
        if self.recent.len() >= REMEMBERED {
            self.recent.clear();
        }
        self.recent.insert(key, number);
        number
    }

    /// The addresses of `chain`, with callers that have no frame pointer inserted behind the user's
    /// leaf.
    fn with_callers(&mut self, image: &Image, files: &Files, chain: Chain) -> Vec<u64> {
        let mut addresses = chain.addresses.to_vec();
        addresses.extend(chain.cut.then_some(CUT));
        let user = addresses
            .iter()
            .position(|&address| address == sys::PERF_CONTEXT_USER);
        let Some((at, &leaf)) = user.and_then(|user| Some((user + 1, addresses.get(user + 1)?)))
        else {
            return addresses;
        };
        let Callers { returns, framed } = self.unwinder.callers(image, files, leaf, &chain);
        let end = if framed { at + 1 } else { addresses.len() };
        addresses.splice(at + 1..end, returns);
        addresses
    }

    /// The word at `address` in `process`.
    pub fn word(&mut self, process: &Process, files: &Files, address: u64) -> Word {
        self.unwinder.word(&process.image, files, address)
    }

    /// All stacks, by number.
    pub fn all(&self) -> &[Stack] {
        &self.stacks
    }

    /// The number of a stack of another interner; `file` gives the number of its file here.
    pub fn keep(&mut self, stack: &Stack, mut file: impl FnMut(u32) -> u32) -> StackId {
        let mut stack = stack.clone();
        let places = stack.frames.iter_mut().filter_map(|frame| match frame {
            Frame::User(place) => Some(&mut place.file),
            _ => None,
        });
        places.for_each(|number| *number = file(*number));
        self.number(stack)
    }

    fn number(&mut self, stack: Stack) -> StackId {
        let next = self.stacks.len() as StackId;
        *self.numbers.entry(stack).or_insert_with_key(|stack| {
            self.stacks.push(stack.clone());
            next
        })
    }

    fn name(&mut self, name: &str) -> u64 {
        if let Some(&number) = self.names.get(name) {
            return number;
        }
        let next = self.names.len() as u64;
        self.names.insert(name.to_owned(), next);
        next
    }
}

/// Turns addresses into places. All but the leaf of each part are return addresses; one less is the
/// call itself, which may be the last instruction of its function.
fn frames(process: &Process, addresses: &[u64]) -> Vec<Frame> {
    let mut frames = Vec::with_capacity(addresses.len());
    let mut kernel = false;
    let mut leaf = true;
    for &address in addresses {
        if address == CUT {
            frames.push(Frame::Cut);
            continue;
        }
        if address >= sys::PERF_CONTEXT_MAX {
            kernel = address == sys::PERF_CONTEXT_KERNEL;
            leaf = true;
            continue;
        }
        let at = address.saturating_sub(u64::from(!leaf));
        frames.push(match process.image.find(at) {
            _ if kernel => Frame::Kernel(at),
            Some(place) => Frame::User(place),
            None => Frame::Nowhere,
        });
        leaf = false;
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Mapping;

    const USER: u64 = sys::PERF_CONTEXT_USER;
    const KERNEL: u64 = sys::PERF_CONTEXT_KERNEL;

    #[test]
    fn what_was_cut_has_a_mark_at_the_root() {
        let files = Files::default();
        let process = Process {
            name: "p".into(),
            image: Image::new(),
        };
        let mut interner = Interner::default();
        for (cut, last) in [(true, Frame::Cut), (false, Frame::Nowhere)] {
            let chain = Chain {
                cut,
                ..Chain::from([KERNEL, 0x9000, USER, 0x1010])
            };
            interner.intern(&process, None, &files, chain);
            let frames = &interner.stacks.last().expect("a stack").frames;
            assert_eq!(frames.last(), Some(&last));
        }
    }

    #[test]
    fn calls_are_where_they_return_to_less_one() {
        let (mut image, mut files) = (Image::new(), Files::default());
        let mapping = Mapping {
            start: 0x1000,
            end: 0x2000,
            offset: 0,
            path: "/bin/p".into(),
        };
        image.map(&mapping, &mut files);
        let name = "p".into();
        let process = Process { name, image };
        let addresses = [KERNEL, 0x9000, 0x9100, USER, 0x1010, 0x1020, 0x3000];
        let mut interner = Interner::default();
        interner.intern(&process, None, &files, addresses.into());
        let user = |offset| Frame::User(Place { file: 0, offset });
        let expected = [
            Frame::Kernel(0x9000),
            Frame::Kernel(0x90ff),
            user(0x10),
            user(0x1f),
            Frame::Nowhere,
        ];
        assert_eq!(interner.all()[0].frames, expected);
    }
}
