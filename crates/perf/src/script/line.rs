//! The lines that `perf script` prints.

/// The line that begins an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    /// The thread's name.
    pub comm: &'a str,
    /// The process, where it is printed.
    pub pid: Option<u32>,
    pub tid: u32,
    /// The CPU, where it is printed.
    pub cpu: Option<u32>,
    /// Nanoseconds.
    pub time: u64,
    /// What the event counts, where it is printed.
    pub period: Option<u64>,
    /// The event's name, with its modifiers.
    pub event: &'a str,
    /// What follows the name.
    pub rest: &'a str,
}

/// A frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub is_kernel: bool,
    /// The function; none if it is not known.
    pub function: Option<&'a str>,
    /// The file that it is in, or `inlined`.
    pub file: &'a str,
}

/// Parses `comm pid/tid [cpu] time: period event: rest`, where process, CPU and period may be
/// missing. A name may have spaces, so the time is what tells the fields apart.
pub(super) fn header(line: &str) -> Option<Header<'_>> {
    let (before, time, after) = words(line).find_map(|(at, word)| {
        let time = nanoseconds(word.strip_suffix(':')?)?;
        let before = line[..at].trim_end();
        let before = thread(before)?;
        Some((before, time, line[at + word.len()..].trim_start()))
    })?;
    let (comm, pid, tid, cpu) = before;
    let (period, after) = match after.split_once(' ').map(|(one, rest)| (one.parse(), rest)) {
        Some((Ok(period), rest)) => (Some(period), rest.trim_start()),
        _ => (None, after),
    };
    let (event, rest) = match after.split_once(char::is_whitespace) {
        _ if after.starts_with(RECORD) => after.split_at(record_name(after)),
        Some((event, rest)) => (event.strip_suffix(':')?, rest),
        None => (after.strip_suffix(':')?, ""),
    };
    Some(Header {
        comm,
        pid,
        tid,
        cpu,
        time,
        period,
        event,
        rest: rest.trim(),
    })
}

/// Parses `address function+offset (file)`.
pub(super) fn frame(line: &str) -> Option<Frame<'_>> {
    const KERNEL: u64 = 1 << 63;
    let (address, rest) = line.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.trim_start();
    let (function, file) = match last_parenthesis(rest) {
        Some(at) => (rest[..at].trim_end(), &rest[at + 1..rest.len() - 1]),
        None => (rest, ""),
    };
    let function = match function.rsplit_once("+0x") {
        Some((function, offset)) if u64::from_str_radix(offset, 16).is_ok() => function,
        _ => function,
    };
    Some(Frame {
        is_kernel: address & KERNEL != 0,
        function: Some(function).filter(|name| !name.is_empty() && *name != "[unknown]"),
        file,
    })
}

/// Where the parenthesis begins that ends the text.
fn last_parenthesis(text: &str) -> Option<usize> {
    let mut depth = 0;
    let found = text.char_indices().rev().find(|(_, letter)| {
        depth += i32::from(*letter == ')') - i32::from(*letter == '(');
        depth <= 0
    });
    found.map(|(at, _)| at).filter(|_| text.ends_with(')'))
}

/// The state and the next thread of `sched:sched_switch`, as perf prints its fields or as its
/// plugin does: `prev_state=S ==> next_comm=t next_pid=3 …`, or `S ==> t:3 [120]`.
pub(super) fn switch(rest: &str) -> Option<(&str, u32)> {
    let (before, after) = rest.split_once(" ==> ")?;
    let state = before.rsplit(' ').next()?;
    let state = state.strip_prefix("prev_state=").unwrap_or(state);
    let next = match after.split_once("next_pid=") {
        Some((_, next)) => next.split(' ').next()?,
        None => after.rsplit_once(" [")?.0.rsplit_once(':')?.1,
    };
    Some((state, next.parse().ok()?))
}

/// The lock's address and the flags of `lock:contention_begin`: `0xffff… (flags=SPIN|READ)`.
pub(super) fn begin(rest: &str) -> Option<(u64, u32)> {
    const FLAGS: [&str; 6] = ["SPIN", "READ", "WRITE", "RT", "PERCPU", "MUTEX"];
    let (_, flags) = rest.split_once("flags=")?;
    let flags = flags.trim_end_matches(')').split('|');
    let bit = |flag: &str| FLAGS.iter().position(|known| *known == flag.trim());
    let flags = flags.filter_map(bit).fold(0, |all, bit| all | 1 << bit);
    Some((lock(rest)?, flags))
}

/// The lock's address of a contention event.
pub(super) fn lock(rest: &str) -> Option<u64> {
    let address = rest.split_whitespace().next()?;
    let address = address.strip_prefix("lock_addr=").unwrap_or(address);
    let address = address.strip_prefix("0x").unwrap_or(address);
    u64::from_str_radix(address, 16).ok()
}

/// The process and the thread that a record of a birth or a name is about: `(1:2):(1:1)`,
/// ` exec: t:1/2`.
pub(super) fn named(header: &Header<'_>) -> Option<(u32, u32)> {
    let (pid, tid) = match header.event {
        "PERF_RECORD_FORK" => {
            let child = header.rest.strip_prefix('(')?.split(')').next()?;
            child.split_once(':')?
        }
        "PERF_RECORD_COMM" => header.rest.rsplit_once(':')?.1.split_once('/')?,
        _ => return None,
    };
    Some((pid.parse().ok()?, tid.parse().ok()?))
}

/// How the names of perf's own records begin.
const RECORD: &str = "PERF_RECORD_";

fn record_name(text: &str) -> usize {
    let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
    text.find(|c| !is_name(c)).unwrap_or(text.len())
}

/// The words of a line, each with where it begins.
fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let start = line.as_ptr() as usize;
    line.split_whitespace()
        .map(move |word| (word.as_ptr() as usize - start, word))
}

/// Parses `comm pid/tid [cpu]`.
fn thread(text: &str) -> Option<(&str, Option<u32>, u32, Option<u32>)> {
    let last = |text| words(text).last();
    let (at, word) = last(text)?;
    let cpu = word.strip_prefix('[').and_then(|cpu| cpu.strip_suffix(']'));
    let cpu = cpu.and_then(|cpu| cpu.parse().ok());
    let text = if cpu.is_some() { &text[..at] } else { text };
    let (at, word) = last(text)?;
    let (pid, tid) = match word.split_once('/') {
        Some((pid, tid)) => (Some(pid.parse().ok()?), tid),
        None => (None, word),
    };
    Some((text[..at].trim(), pid, tid.parse().ok()?, cpu))
}

/// Parses seconds with a fraction, in any number of digits.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(9 - fraction.len() as u32);
    let nanoseconds = fraction.parse::<u64>().ok()? * scale;
    let seconds: u64 = seconds.parse().ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_what_is_printed_of_it() {
        let line = "Web Content 2: x  12/34 [003]  5.000001:    2004008 cpu-clock:u: ";
        let expected = Header {
            comm: "Web Content 2: x",
            pid: Some(12),
            tid: 34,
            cpu: Some(3),
            time: 5_000_001_000,
            period: Some(2_004_008),
            event: "cpu-clock:u",
            rest: "",
        };
        assert_eq!(header(line), Some(expected));
        let line = "     t  34 5.000000001: lock:contention_end: 0xab (ret=0)";
        let short = header(line).expect("an event");
        assert_eq!((short.pid, short.cpu, short.period), (None, None, None));
        assert_eq!(
            (short.event, lock(short.rest)),
            ("lock:contention_end", Some(0xab))
        );
        let line = "t 1/2 7.5: PERF_RECORD_EXIT(1:2):(1:1)";
        let record = header(line).expect("an event");
        assert_eq!(
            (record.event, record.rest),
            ("PERF_RECORD_EXIT", "(1:2):(1:1)")
        );
        for bad in [
            "",
            "t",
            "t 1: x:",
            "t x 1.5: cycles:",
            "t 1 1.5: cycles",
            "1.5: cycles:",
        ] {
            assert_eq!(header(bad), None, "{bad}");
        }
        assert_eq!(header("t 1 99999999999999.5: cycles:"), None);
    }

    #[test]
    fn records_name_the_processes_of_threads() {
        let of = |line| named(&header(line).expect("an event"));
        assert_eq!(of("p 1 0.0: PERF_RECORD_FORK(1:2):(1:1)"), Some((1, 2)));
        assert_eq!(of("p 1 0.0: PERF_RECORD_COMM: a: b:3/4"), Some((3, 4)));
        assert_eq!(of("p 1 0.5: PERF_RECORD_COMM exec: t:5/5"), Some((5, 5)));
        assert_eq!(of("p 1 0.5: PERF_RECORD_EXIT(1:2):(1:1)"), None);
    }

    #[test]
    fn a_frame_has_a_function_and_a_file() {
        let parsed = |line| frame(line).map(|one| (one.is_kernel, one.function, one.file));
        assert_eq!(
            parsed("\tffffffff821f8b58 __schedule+0x618 ([kernel.kallsyms])"),
            Some((true, Some("__schedule"), "[kernel.kallsyms]"))
        );
        assert_eq!(
            parsed("\t 7f12 f(int, char (*)[2])+0x1 (/a (deleted))"),
            Some((false, Some("f(int, char (*)[2])"), "/a (deleted)"))
        );
        assert_eq!(
            parsed("  11cf [unknown] (/tmp/t)"),
            Some((false, None, "/tmp/t"))
        );
        assert_eq!(parsed("  11cf main"), Some((false, Some("main"), "")));
        for bad in ["", "zz main (x)", "main"] {
            assert_eq!(frame(bad), None, "{bad}");
        }
    }

    #[test]
    fn switches_are_read_as_fields_and_as_the_plugin_prints_them() {
        let fields = "prev_comm=t prev_pid=1 prev_prio=120 prev_state=R+ ==> next_comm=a b \
                      next_pid=15 next_prio=120";
        assert_eq!(switch(fields), Some(("R+", 15)));
        assert_eq!(switch("t:1 [120] S ==> a: b:15 [120]"), Some(("S", 15)));
        assert_eq!(switch("t:1 [120] S"), None);
    }

    #[test]
    fn flags_are_those_of_the_kernel() {
        assert_eq!(begin("0xffff (flags=SPIN|READ)"), Some((0xffff, 3)));
        assert_eq!(begin("0xffff (flags=MUTEX)"), Some((0xffff, 32)));
        assert_eq!(begin("0xffff"), None);
    }
}
