//! Lists of CPUs, as the kernel writes them.

/// The numbers of CPUs end below this on every kernel there is.
const END: u32 = 8192;

/// The CPUs of a list such as `0-3,6`; none if it is no list of CPUs, such as one that is empty,
/// descends, or has numbers that no kernel gives.
pub fn listed_cpus(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for range in list.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.trim().parse::<u32>().ok().filter(|cpu| *cpu < END);
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_what_is_none_is_not() {
        for (list, cpus) in [
            ("0-2,5\n", vec![0, 1, 2, 5]),
            ("0", vec![0]),
            ("7,0-1", vec![7, 0, 1]),
        ] {
            assert_eq!(listed_cpus(list), Some(cpus), "{list}");
        }
        assert_eq!(listed_cpus("0-8191").map(|cpus| cpus.len()), Some(8192));
        for list in ["", "x", "none", "3-0", "0-8192", "0-4294967295", "1,", "-1"] {
            assert_eq!(listed_cpus(list), None, "{list}");
        }
    }
}
