//! Names for addresses.

mod call;
mod kernel;
mod user;

use crate::account::{Frame, Stack};
use crate::tasks::Place;
use blazesym::symbolize::Symbolizer;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use kernel::missing;
#[cfg(test)]
pub(crate) use kernel::plain;

/// A stack with names, each part from the leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// The process's command.
    pub process: String,
    pub kernel: Vec<String>,
    pub user: Vec<Function>,
}

/// A function of a program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Function {
    pub name: String,
    /// The file of its source, where that is known. Functions that are inlined have names
    /// without a path: `lock` may be anybody's, in `std/src/sync/mutex.rs` it is not.
    pub source: String,
    /// Whether it is of what programs are run by: the C library, the loader, the kernel's
    /// page in every process.
    pub system: bool,
}

/// Names all stacks; places are in `files`.
pub(crate) fn resolve(stacks: Vec<Stack>, files: &[String]) -> Vec<Named> {
    let symbolizer = Symbolizer::new();
    let (kernel, user) = distinct(&stacks);
    let calls = call::calls(&stacks, files);
    let kernel = kernel::names(&symbolizer, &kernel);
    let user = user::names(&symbolizer, &user, files);
    let name = |stack: Stack| {
        let mut named = Named {
            process: stack.name,
            ..Named::default()
        };
        for frame in stack.frames {
            match frame {
                Frame::Kernel(address) => named.kernel.push(kernel[&address].clone()),
                Frame::User(place) => named.user.extend_from_slice(&user[&place]),
                Frame::Perhaps(place) if !calls.contains(&place) => {}
                Frame::Perhaps(place) => named.user.extend_from_slice(&user[&place]),
                Frame::Nowhere => named.user.push(user::unknown()),
            }
        }
        named
    };
    stacks.into_iter().map(name).collect()
}

/// Kernel addresses, and places by file.
fn distinct(stacks: &[Stack]) -> (BTreeSet<u64>, BTreeMap<u32, BTreeSet<u64>>) {
    let mut kernel = BTreeSet::new();
    let mut user: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for frame in stacks.iter().flat_map(|stack| &stack.frames) {
        match *frame {
            Frame::Kernel(address) => {
                kernel.insert(address);
            }
            Frame::User(Place { file, offset }) | Frame::Perhaps(Place { file, offset }) => {
                user.entry(file).or_default().insert(offset);
            }
            Frame::Nowhere => {}
        }
    }
    (kernel, user)
}
