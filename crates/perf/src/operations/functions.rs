//! What functions of the kernel tell: what a thread in them waits for, or that an interrupt runs.

use recording::WaitFor;

/// Beginnings of names of functions, and what a thread in them waits for.
const WAITS: &[(&str, WaitFor)] = &[
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
    let found = WAITS.iter().find(|(start, _)| name.starts_with(start));
    found.map(|&(_, wait)| wait)
}

/// Returns true if an interrupt calls the function `name`, or a thread that does an interrupt's
/// work: what happens in it is not for the thread that runs.
fn is_of_interrupts(name: &str) -> bool {
    const STARTS: [&str; 6] = [
        "asm_sysvec_",
        "asm_common_interrupt",
        "common_interrupt",
        "irq_exit_rcu",
        "__irq_exit_rcu",
        "run_ksoftirqd",
    ];
    STARTS.iter().any(|start| name.starts_with(start))
}

/// The functions of the running kernel that tell something; none where it hides its addresses.
#[derive(Debug)]
pub(super) struct Known {
    pub waits: Functions<WaitFor>,
    pub interrupts: Functions<()>,
}

impl Known {
    /// Reads the kernel's symbols, which takes a while.
    pub fn read() -> Known {
        let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let is_of_interrupts = |name: &str| is_of_interrupts(name).then_some(());
        Known {
            waits: Functions::in_symbols(&symbols, waits_for),
            interrupts: Functions::in_symbols(&symbols, is_of_interrupts),
        }
    }
}

/// Functions that tell something, by address: the first, the one behind the last, and what.
#[derive(Debug)]
pub(super) struct Functions<T>(Vec<(u64, u64, T)>);

impl<T: Copy> Functions<T> {
    fn in_symbols(symbols: &str, tells: impl Fn(&str) -> Option<T>) -> Self {
        let parse = |line| {
            let mut words = str::split_whitespace(line);
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((address, tells(words.nth(1)?)))
        };
        let mut all: Vec<(u64, Option<T>)> = symbols.lines().filter_map(parse).collect();
        all.retain(|&(address, _)| address != 0);
        all.sort_by_key(|&(address, _)| address);
        let ranges = all.windows(2).filter_map(|pair| {
            let told = pair[0].1?;
            Some((pair[0].0, pair[1].0, told))
        });
        Functions(ranges.collect())
    }

    /// What the innermost function of a stack tells, of those that tell something.
    pub fn find(&self, chain: &[u64]) -> Option<T> {
        chain.iter().find_map(|&address| {
            let next = self.0.partition_point(|&(start, ..)| start <= address);
            let &(_, end, told) = self.0.get(next.checked_sub(1)?)?;
            (address < end).then_some(told)
        })
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
    fn the_innermost_function_that_tells_it_counts() {
        let waits = Functions::in_symbols(SYMBOLS, waits_for);
        let found = waits.find(&[0xffff_1010, 0xffff_2080]);
        assert_eq!(found, Some(WaitFor::Futex));
        let found = waits.find(&[0xffff_1010, 0xffff_307f, 0xffff_3090]);
        assert_eq!(found, Some(WaitFor::Pipe));
        let others = [0xffff_1010, 0xffff_2100, 0xffff_3080, 0, u64::MAX];
        assert_eq!(waits.find(&others), None);
    }

    #[test]
    fn a_kernel_that_hides_its_addresses_tells_nothing() {
        let hidden = "0000000000000000 t pipe_read\n0000000000000000 t vfs_read\n";
        assert_eq!(Functions::in_symbols(hidden, waits_for).find(&[0, 1]), None);
    }

    #[test]
    fn this_kernel_has_both() {
        if crate::support::is_root() {
            let Known { waits, interrupts } = Known::read();
            assert!(!waits.0.is_empty() && !interrupts.0.is_empty());
        }
    }
}
