//! Call sites by name: the functions of the VM and its locks, not the simulator's.

use serde::Serialize;
use sim::SiteName;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// A function and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// Its path.
    pub function: String,
    /// `file:line`, from the repository's root.
    pub place: String,
}

/// How many frames are kept.
const KEPT: usize = 4;
/// Whose functions are kept.
const CRATES: [&str; 3] = ["crates/vm/", "crates/sync/", "crates/baselines/"];

/// The innermost frames of return addresses that belong to what is checked.
pub fn frames(addresses: &[usize]) -> Vec<Frame> {
    let frames = addresses.iter().flat_map(|&address| resolve(address));
    frames.take(KEPT).collect()
}

/// The frames at one address; remembered, since debug information is slow to read.
fn resolve(address: usize) -> Vec<Frame> {
    static KNOWN: LazyLock<Mutex<HashMap<usize, Vec<Frame>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let resolved = known.entry(address).or_insert_with(|| {
        let names = SiteName::resolve(address);
        names.into_iter().filter_map(frame).collect()
    });
    resolved.clone()
}

fn frame(name: SiteName) -> Option<Frame> {
    let starts = CRATES.iter().filter_map(|known| name.place.find(known));
    let start = starts.min()?;
    Some(Frame {
        function: short(&name.function),
        place: name.place[start..].to_owned(),
    })
}

/// A function's path without type parameters: `<a::B<C> as d::E<F>>::g` is `a::B::g`.
fn short(function: &str) -> String {
    let implementer = match function.strip_prefix('<') {
        Some(rest) => rest,
        None => function,
    };
    let mut depth = 0i32;
    let mut path = String::new();
    let mut skipping = false;
    for (at, letter) in implementer.char_indices() {
        match letter {
            '<' => depth += 1,
            // The end of the implementer; `->` is in the arguments of functions only.
            '>' if depth == 0 => skipping = false,
            '>' => depth -= 1,
            ' ' if depth == 0 && implementer[at..].starts_with(" as ") => skipping = true,
            _ if depth == 0 && !skipping => path.push(letter),
            _ => {}
        }
    }
    path.replace("scalevm_", "")
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn type_parameters_go() {
        let of = [
            (
                "scalevm_vm::page::Page<M,I>::lock_pv",
                "vm::page::Page::lock_pv",
            ),
            (
                "<vm::vm::Vm<M> as core::Drop<X<Y>>>::drop",
                "vm::vm::Vm::drop",
            ),
            ("vm::fault", "vm::fault"),
        ];
        for (long, expected) in of {
            assert_eq!(short(long), expected);
        }
    }
}
