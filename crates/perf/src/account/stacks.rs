//! Stacks, each kept once.

use super::StackId;
use crate::event::Chain;
use crate::tasks::{Place, Process};
use perf_event_open_sys::bindings as sys;
use std::collections::HashMap;

/// Chains remembered at most: programs started anew lie at new addresses each time.
const REMEMBERED: usize = 1 << 16;

/// Where a stack was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Frame {
    /// An address of the kernel.
    Kernel(u64),
    /// A place in a program or library.
    User(Place),
    /// An address where nothing is known to be.
    Nowhere,
}

/// A process's name and frames, from the leaf.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Stack {
    pub name: String,
    pub frames: Vec<Frame>,
}

/// Numbers stacks.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    stacks: Vec<Stack>,
    numbers: HashMap<Stack, StackId>,
    /// By image, process's name and raw addresses: most stacks come again.
    recent: HashMap<(u64, u64, Chain), StackId>,
    names: HashMap<String, u64>,
}

impl Interner {
    /// The number of the stack of `chain` in `process`.
    pub fn intern(&mut self, process: &Process, chain: Chain) -> StackId {
        let name = self.name(&process.name);
        let key = (process.image.id, name, chain);
        if let Some(&known) = self.recent.get(&key) {
            return known;
        }
        let stack = Stack {
            name: process.name.clone(),
            frames: frames(process, &key.2),
        };
        let number = self.number(stack);
        if self.recent.len() >= REMEMBERED {
            self.recent.clear();
        }
        self.recent.insert(key, number);
        number
    }

    /// All stacks, by number.
    pub fn into_stacks(self) -> Vec<Stack> {
        self.stacks
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

/// Turns addresses into places. All but the leaf of each part are where calls return to;
/// one less is the call itself, which may be its function's last instruction.
fn frames(process: &Process, chain: &[u64]) -> Vec<Frame> {
    let mut frames = Vec::with_capacity(chain.len());
    let mut kernel = false;
    let mut leaf = true;
    for &address in chain {
        if address >= sys::PERF_CONTEXT_MAX {
            kernel = matches!(address, sys::PERF_CONTEXT_KERNEL);
            leaf = true;
            continue;
        }
        let at = address.saturating_sub(u64::from(!leaf));
        leaf = false;
        frames.push(match process.image.find(at) {
            _ if kernel => Frame::Kernel(at),
            Some(place) => Frame::User(place),
            None => Frame::Nowhere,
        });
    }
    frames
}
