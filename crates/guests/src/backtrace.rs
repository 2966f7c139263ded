//! Names for the kernel's addresses.

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Symbolized, Symbolizer};
use std::fmt;
use std::path::Path;

/// A function on the stack, with the line where it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The function, or the address if it has no name.
    pub name: String,
    /// File and line, if they are known.
    pub line: Option<String>,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.line {
            Some(line) => write!(f, "{} ({line})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The functions at `addresses` of `kernel`, inlined ones before those that contain them. The
/// addresses are where calls return to, so the call is before each.
pub(crate) fn frames(kernel: &Path, addresses: &[u64]) -> Vec<Frame> {
    let calls: Vec<u64> = addresses.iter().map(|one| one.saturating_sub(1)).collect();
    let named = named(kernel, &calls, addresses);
    named.into_iter().flatten().collect()
}

/// The functions at each of `addresses` of a program or kernel, inlined ones before those that
/// contain them.
pub fn functions(file: &Path, addresses: &[u64]) -> Vec<Vec<Frame>> {
    named(file, addresses, addresses)
}

/// The functions at each of `addresses`; one without a name goes by the address in `shown`.
fn named(file: &Path, addresses: &[u64], shown: &[u64]) -> Vec<Vec<Frame>> {
    let symbolizer = Symbolizer::new();
    let source = Source::Elf(Elf::new(file));
    let found = symbolizer.symbolize(&source, Input::VirtOffset(addresses));
    let found = found.unwrap_or_default();
    let nameless = |address: &u64| Frame {
        name: format!("{address:#x}"),
        line: None,
    };
    let all = shown.iter().enumerate();
    all.map(|(index, address)| known(found.get(index)).unwrap_or_else(|| vec![nameless(address)]))
        .collect()
}

fn known(symbol: Option<&Symbolized>) -> Option<Vec<Frame>> {
    let symbol = symbol?.as_sym()?;
    let inlined = symbol.inlined.iter().rev();
    let inlined = inlined.map(|one| frame(&one.name, one.code_info.as_ref()));
    let own = frame(&symbol.name, symbol.code_info.as_deref());
    Some(inlined.chain([own]).collect())
}

fn frame(name: &str, code: Option<&CodeInfo>) -> Frame {
    let line = code.map(|code| {
        let path = code.to_path();
        let path = path.display();
        code.line
            .map_or(path.to_string(), |line| format!("{path}:{line}"))
    });
    Frame {
        name: name.to_owned(),
        line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn landmark() {
        std::hint::black_box(());
    }

    #[test]
    fn addresses_get_names_and_those_without_stay() {
        let here = std::env::current_exe().expect("a program");
        let file = std::fs::read("/proc/self/maps").expect("maps");
        let maps = String::from_utf8(file).expect("text");
        let first = maps.split('-').next().expect("an address");
        let base = u64::from_str_radix(first, 16).expect("a number");
        let address = landmark as *const () as usize as u64 - base + 1;
        let frames = frames(&here, &[address, 1 << 60]);
        assert!(frames[0].name.ends_with("landmark"), "{frames:?}");
        assert_eq!(frames.last().expect("two").name, "0x1000000000000000");
    }
}
