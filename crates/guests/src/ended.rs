//! How a guest has ended, as its second serial line reports.

use crate::Frame;
use std::fmt;

/// How a guest has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The program has ended with this status; 128 and the signal's number if a signal has ended
    /// it.
    Exit(u8),
    /// The kernel has found itself broken.
    Panic(Panic),
    /// The machine has stopped, and nothing was said.
    Silently,
    /// It was stopped at the caller's wish.
    Stopped,
}

/// A panic of the guest's kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panic {
    /// The kernel's message.
    pub message: String,
    /// The functions on the stack, innermost first.
    pub stack: Vec<Frame>,
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel panicked: {}", self.message)?;
        let mut numbered = self.stack.iter().enumerate();
        numbered.try_for_each(|(depth, frame)| write!(f, "\n{depth:>4}: {frame}"))
    }
}

/// A guest's report.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// The program's status.
    pub(crate) status: Option<u8>,
    /// A panic's message, and the addresses on the stack.
    pub(crate) panic: Option<(String, Vec<u64>)>,
    /// All else.
    pub(crate) notes: Vec<String>,
}

impl Report {
    /// Reads lines of `exit STATUS`, `panic MESSAGE`, `at ADDRESS`.
    pub(crate) fn parse(text: &str) -> Report {
        let mut report = Report::default();
        for line in text.lines().map(str::trim_end) {
            report.take(line);
        }
        report
    }

    fn take(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, &mut self.panic) {
            ("exit", _) if rest.parse::<u8>().is_ok() => self.status = rest.parse().ok(),
            ("panic", None) => self.panic = Some((rest.to_owned(), Vec::new())),
            ("at", Some((_, stack))) if address(rest).is_some() => stack.extend(address(rest)),
            ("", _) => {}
            _ => self.notes.push(line.to_owned()),
        }
    }
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_read_line_by_line() {
        let text = "hello there\nexit 300\npanic out of frames\nat 0xffffffff80100000\nat x\npanic \
                    twice\nexit 7\n";
        let report = Report::parse(text);
        assert_eq!(report.status, Some(7));
        let panic = ("out of frames".to_owned(), vec![0xffff_ffff_8010_0000]);
        assert_eq!(report.panic, Some(panic));
        assert_eq!(
            report.notes,
            ["hello there", "exit 300", "at x", "panic twice"]
        );
        assert_eq!(Report::parse(""), Report::default());
    }
}
