//! What a thread waits for, by the function of the kernel in which it sleeps.

use recording::WaitFor;

/// Beginnings of names of functions, and what a thread in them waits for.
const FUNCTIONS: &[(&str, WaitFor)] = &[
    ("futex_", WaitFor::Futex),
    ("__futex_", WaitFor::Futex),
    ("do_futex", WaitFor::Futex),
    ("pipe_", WaitFor::Pipe),
    ("anon_pipe_", WaitFor::Pipe),
    ("fifo_pipe_", WaitFor::Pipe),
    ("ep_poll", WaitFor::Poll),
    ("do_epoll_", WaitFor::Poll),
    ("do_poll", WaitFor::Poll),
    ("do_sys_poll", WaitFor::Poll),
    ("do_select", WaitFor::Poll),
    ("poll_schedule_", WaitFor::Poll),
    ("do_wait", WaitFor::Child),
    ("__do_wait", WaitFor::Child),
    ("kernel_wait", WaitFor::Child),
    ("do_nanosleep", WaitFor::Time),
    ("hrtimer_nanosleep", WaitFor::Time),
    ("common_nsleep", WaitFor::Time),
];

/// What is waited for in the function `name`; none if others say more.
pub(super) fn waits_for(name: &str) -> Option<WaitFor> {
    let found = FUNCTIONS.iter().find(|(start, _)| name.starts_with(start));
    found.map(|&(_, wait)| wait)
}

/// The functions in which threads wait, by address: the first, the one behind the last, and what is
/// waited for there.
#[derive(Debug, Default)]
pub(super) struct Sleeps(Vec<(u64, u64, WaitFor)>);

impl Sleeps {
    /// Those of the running kernel; none where it hides its addresses.
    pub fn of_the_kernel() -> Sleeps {
        let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        Sleeps::in_symbols(&symbols)
    }

    fn in_symbols(symbols: &str) -> Sleeps {
        let parse = |line| {
            let mut words = str::split_whitespace(line);
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((address, waits_for(words.nth(1)?)))
        };
        let mut all: Vec<(u64, Option<WaitFor>)> = symbols.lines().filter_map(parse).collect();
        all.retain(|&(address, _)| address != 0);
        all.sort_by_key(|&(address, _)| address);
        let ranges = all.windows(2).filter_map(|pair| {
            let wait = pair[0].1?;
            Some((pair[0].0, pair[1].0, wait))
        });
        Sleeps(ranges.collect())
    }

    /// What a thread with this stack waits for.
    pub fn of(&self, chain: &[u64]) -> WaitFor {
        let found = chain.iter().find_map(|&address| {
            let next = self.0.partition_point(|&(start, ..)| start <= address);
            let &(_, end, wait) = self.0.get(next.checked_sub(1)?)?;
            (address < end).then_some(wait)
        });
        found.unwrap_or(WaitFor::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "\
        ffff1000 t schedule\n\
        ffff3000 t pipe_read\t[pipes]\n\
        ffff2000 T futex_do_wait.isra.0\n\
        ffff2100 T kmalloc\n\
        ffff3080 t vfs_read\n";

    #[test]
    fn the_innermost_function_that_says_it_counts() {
        let sleeps = Sleeps::in_symbols(SYMBOLS);
        assert_eq!(sleeps.of(&[0xffff_1010, 0xffff_2080]), WaitFor::Futex);
        assert_eq!(
            sleeps.of(&[0xffff_1010, 0xffff_307f, 0xffff_3090]),
            WaitFor::Pipe
        );
        let others = [0xffff_1010, 0xffff_2100, 0xffff_3080, 0, u64::MAX];
        assert_eq!(sleeps.of(&others), WaitFor::Other);
    }

    #[test]
    fn a_kernel_that_hides_its_addresses_says_nothing() {
        let hidden = "0000000000000000 t pipe_read\n0000000000000000 t vfs_read\n";
        assert_eq!(Sleeps::in_symbols(hidden).of(&[0, 1]), WaitFor::Other);
    }
}
