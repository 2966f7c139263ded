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
    /// A place that is a caller's if a call precedes it, and nobody's if not.
    Perhaps(Place),
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
    pub fn intern(&mut self, process: &Process, mut chain: Chain) -> StackId {
        // A local variable on top must not make two stacks of one.
        chain.top = return_of_leaf(process, &chain).unwrap_or_default();
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
fn frames(process: &Process, chain: &Chain) -> Vec<Frame> {
    let mut frames = Vec::with_capacity(chain.addresses.len());
    let mut kernel = false;
    let mut leaf = true;
    for &address in &chain.addresses {
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
        if leaf && !kernel {
            let caller = process.image.find(chain.top.saturating_sub(1));
            frames.extend(caller.map(Frame::Perhaps));
        }
        leaf = false;
    }
    frames
}

/// Where the user's leaf may return to, if the frame pointer does not know: functions of
/// the C library that make system calls have no frame, and the frame pointer is still
/// their caller's.
fn return_of_leaf(process: &Process, chain: &Chain) -> Option<u64> {
    let before_user = |&&address: &&u64| address != sys::PERF_CONTEXT_USER;
    let mut user = chain.addresses.iter().skip_while(before_user).skip(1);
    let (&leaf, next) = (user.next()?, user.next());
    let image = &process.image;
    let unknown = next != Some(&chain.top) && image.is_system(leaf);
    let mapped = image.find(chain.top.checked_sub(1)?).is_some();
    (unknown && mapped).then_some(chain.top)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Mapping;
    use crate::tasks::{Files, Image};

    const USER: u64 = sys::PERF_CONTEXT_USER;
    const KERNEL: u64 = sys::PERF_CONTEXT_KERNEL;

    /// A program at 0x1000, the C library at 0x5000.
    fn process() -> Process {
        let (mut image, mut files) = (Image::new(), Files::default());
        for (start, path) in [(0x1000, "/bin/p"), (0x5000, "/lib/libc.so.6")] {
            let (end, offset, path) = (start + 0x1000, 0, path.into());
            image.map(
                &Mapping {
                    start,
                    end,
                    offset,
                    path,
                },
                &mut files,
            );
        }
        let name = "p".into();
        Process { name, image }
    }

    fn stack(addresses: &[u64], top: u64) -> Vec<Frame> {
        let mut interner = Interner::default();
        let addresses = addresses.into();
        interner.intern(&process(), Chain { addresses, top });
        interner.into_stacks().remove(0).frames
    }

    fn user(file: u32, offset: u64) -> Frame {
        Frame::User(Place { file, offset })
    }

    #[test]
    fn calls_are_where_they_return_to_less_one() {
        let frames = stack(&[KERNEL, 0x9000, 0x9100, USER, 0x1010, 0x1020, 0x3000], 0);
        let kernel = [Frame::Kernel(0x9000), Frame::Kernel(0x90ff)];
        let expected = [&kernel[..], &[user(0, 0x10), user(0, 0x1f), Frame::Nowhere]].concat();
        assert_eq!(frames, expected);
    }

    #[test]
    fn a_leaf_of_the_c_library_returns_to_the_top_of_the_stack() {
        let (file, offset) = (0, 0x4f);
        let caller = Frame::Perhaps(Place { file, offset });
        let frames = stack(&[USER, 0x5010, 0x1020], 0x1050);
        assert_eq!(frames, [user(1, 0x10), caller, user(0, 0x1f)]);
    }

    #[test]
    fn what_is_known_or_can_not_be_a_caller_is_not_added() {
        let known = [user(1, 0x10), user(0, 0x1f)];
        assert_eq!(
            stack(&[USER, 0x5010, 0x1020], 0x1020),
            known,
            "it has a frame"
        );
        assert_eq!(stack(&[USER, 0x5010, 0x1020], 0x7777), known, "data");
        assert_eq!(stack(&[USER, 0x5010, 0x1020], 0), known, "nothing");
        let own = [user(0, 0x10), user(0, 0x1f)];
        assert_eq!(stack(&[USER, 0x1010, 0x1020], 0x1050), own, "the program's");
    }

    #[test]
    fn data_on_top_makes_no_other_stack() {
        let (mut interner, process) = (Interner::default(), process());
        let mut number = |top| {
            let addresses = [USER, 0x5010, 0x1020].into();
            interner.intern(&process, Chain { addresses, top })
        };
        assert_eq!(number(5), number(6));
        assert_ne!(number(5), number(0x1050));
    }
}
