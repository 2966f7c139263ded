//! Workloads that map more memory at a time, or less, than will-it-scale's.

use crate::Workload;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

/// Sizes are multiples of the largest page that a system may have.
const PAGE: usize = 64 << 10;
/// The largest: what a processor translates for a process.
const MOST: usize = 1 << 47;

impl Workload {
    /// This workload with another size, such as `64K`, `1M` or `2G`; none if it has no size, or
    /// that is none.
    pub(crate) fn sized(&self, size: &str) -> Option<&'static Workload> {
        let bytes = parse(size).filter(|_| self.size > 0)?;
        let mut needs = self.needs;
        if needs.memory == self.size {
            needs.memory = bytes;
        }
        let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
        Some(Box::leak(Box::new(Workload {
            name: leak(format!("{}:{size}", self.name)),
            description: leak(format!("{}, in {size}", self.description)),
            unit: self.unit,
            needs,
            size: bytes,
            body: self.body,
        })))
    }
}

/// Bytes: whole pages, with a unit.
fn parse(size: &str) -> Option<usize> {
    let units = [("K", 10), ("M", 20), ("G", 30)];
    let (number, shift) = units
        .iter()
        .find_map(|(unit, shift)| Some((size.strip_suffix(unit)?, shift)))?;
    let is_plain = number.bytes().all(|digit| digit.is_ascii_digit()) && !number.starts_with('0');
    let number: usize = number.parse().ok().filter(|_| is_plain)?;
    let bytes = number.checked_mul(1 << shift)?;
    (bytes <= MOST && bytes.is_multiple_of(PAGE)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use crate::find;

    #[test]
    fn a_name_may_have_a_size() {
        let small = find("page_fault1:1M").expect("a workload");
        assert_eq!((small.name, small.size), ("page_fault1:1M", 1 << 20));
        assert_eq!((small.needs.memory, small.round(4096)), (1 << 20, 256));
        let mapping = find("mmap1:64K").expect("a workload");
        assert_eq!((mapping.needs.memory, mapping.size), (0, 64 << 10));
        for none in [
            "brk1:1M",
            "mmap1:",
            "mmap1:1",
            "mmap1:1K",
            "mmap1:01M",
            "mmap1:+1M",
            "mmap1:-1M",
            "mmap1:0M",
            "mmap1:1T",
            "mmap1:99999999999999G",
            "mmap1:200000G",
            "mmap1:1M:1M",
            ":1M",
        ] {
            assert_eq!(find(none), None, "{none}");
        }
    }
}
