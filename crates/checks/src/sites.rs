//! Call sites by name: the functions of the VM and its locks, not the simulator's.

use serde::Serialize;
use sim::SiteName;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

/// A function and its place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// The function's path.
    pub function: String,
    /// `file:line`, from the repository's root.
    pub place: String,
}

/// The sources whose functions are kept: the nearest few of the locks, counters and epochs, and
/// those of the VM that called them.
const KEPT: [(&[&str], usize); 2] = [
    (&["crates/sync/"], 2),
    (
        &[
            "crates/vm/",
            "crates/baselines/",
            "crates/sched/",
            "crates/ipc/",
        ],
        4,
    ),
];

/// The innermost frames of return addresses that belong to the kept sources.
pub fn frames(addresses: &[usize]) -> Vec<Frame> {
    let mut left = KEPT.map(|(_, count)| count);
    let frames = addresses.iter().flat_map(|&address| resolve(address));
    let kept = frames.filter(|(kind, _)| {
        let left = &mut left[*kind];
        let keeps = *left > 0;
        *left -= usize::from(keeps);
        keeps
    });
    kept.map(|(_, frame)| frame).collect()
}

/// The frames at one address, with the index in [`KEPT`]. They are cached, since debug information
/// is slow to read.
fn resolve(address: usize) -> Vec<(usize, Frame)> {
    type Known = HashMap<usize, Vec<(usize, Frame)>>;
    static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let resolved = known.entry(address).or_insert_with(|| {
        let names = SiteName::resolve(address);
        names.into_iter().filter_map(frame).collect()
    });
    resolved.clone()
}

fn frame(name: SiteName) -> Option<(usize, Frame)> {
    let start = |names: &[&str]| names.iter().find_map(|known| name.place.find(known));
    let mut kinds = KEPT.iter().enumerate();
    let (kind, start) = kinds.find_map(|(kind, (names, _))| Some((kind, start(names)?)))?;
    let frame = Frame {
        function: short(&name.function),
        place: name.place[start..].to_owned(),
    };
    Some((kind, frame))
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
