//! Names for addresses.

mod data;
mod kernel;
mod user;

use crate::account::{Frame, Stack};
use crate::tasks::Place;
use blazesym::symbolize::Symbolizer;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use data::{names as words, variable};
pub(crate) use kernel::{missing, plain};

/// A stack with names, each part from the leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// The process's command.
    pub process: String,
    /// The thread's name, if it has one of its own.
    pub thread: Option<String>,
    pub kernel: Vec<String>,
    pub user: Vec<Function>,
}

impl Named {
    /// Returns true if the stack ran in an interrupt, on behalf of nobody.
    pub fn interrupted(&self) -> bool {
        const INTERRUPTS: [&str; 5] = [
            "asm_sysvec_",
            "asm_common_interrupt",
            "common_interrupt",
            "handle_softirqs",
            "__do_softirq",
        ];
        let is = |frame: &String| INTERRUPTS.iter().any(|prefix| frame.starts_with(prefix));
        self.kernel.iter().any(is)
    }
}

/// A function of a program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Function {
    pub name: String,
    /// The source file, where known. Inlined functions have names without a path: `lock` says
    /// little, `std/src/sync/mutex.rs` says which.
    pub source: String,
    /// The line in it, 0 if unknown.
    pub line: u32,
    /// True if it belongs to the runtime of programs: the C library, the loader, the kernel's page
    /// in every process.
    pub system: bool,
}

/// Names all stacks; `files` holds the names of the places' files.
pub(crate) fn resolve(stacks: Vec<Stack>, files: &[String]) -> Vec<Named> {
    let symbolizer = Symbolizer::new();
    let (kernel, user) = distinct(&stacks);
    let kernel = kernel::names(&symbolizer, &kernel);
    let user = user::names(&symbolizer, &user, files);
    let name = |stack: Stack| {
        let mut named = Named {
            process: stack.name,
            thread: stack.thread,
            ..Named::default()
        };
        for frame in stack.frames {
            match frame {
                Frame::Kernel(address) => named.kernel.push(kernel[&address].clone()),
                Frame::User(place) => named.user.extend_from_slice(&user[&place]),
                Frame::Nowhere => named.user.push(user::unknown()),
                Frame::Cut => named.user.push(user::cut()),
            }
        }
        named
    };
    stacks.into_iter().map(name).collect()
}

/// The distinct kernel addresses, and the distinct places by file.
fn distinct(stacks: &[Stack]) -> (BTreeSet<u64>, BTreeMap<u32, BTreeSet<u64>>) {
    let mut kernel = BTreeSet::new();
    let mut user: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for frame in stacks.iter().flat_map(|stack| &stack.frames) {
        match *frame {
            Frame::Kernel(address) => {
                kernel.insert(address);
            }
            Frame::User(Place { file, offset }) => {
                user.entry(file).or_default().insert(offset);
            }
            Frame::Nowhere | Frame::Cut => {}
        }
    }
    (kernel, user)
}
