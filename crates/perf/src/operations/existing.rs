//! The memory of processes that already run, from /proc.

use super::raw::Mapped;
use std::fs;

/// A process's mappings.
#[derive(Debug, Default)]
pub(super) struct Existing {
    pub mappings: Vec<Mapped>,
    /// Where its heap begins.
    pub heap: Option<u64>,
}

impl Existing {
    /// The mappings now; none if it is gone, or a thread of the kernel.
    pub fn of(pid: u32) -> Option<Existing> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mappings: Vec<Mapped> = maps.lines().filter_map(mapped).collect();
        let heap = start_of_heap(&stat);
        (!mappings.is_empty()).then_some(Existing { mappings, heap })
    }
}

/// A line of `maps`.
fn mapped(line: &str) -> Option<Mapped> {
    let mut words = line.splitn(6, ' ');
    let hex = |word: &str| u64::from_str_radix(word, 16).ok();
    let (start, end) = words.next()?.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let rights = words.next()?.as_bytes();
    let offset = hex(words.next()?)?;
    let (major, minor) = words.next()?.split_once(':')?;
    let device = hex(major)? << 32 | hex(minor)?;
    let inode = words.next()?.parse().ok()?;
    let path = words.next().unwrap_or_default().trim_start();
    let right = |at: usize, letter, bit: i32| match rights.get(at) == Some(&letter) {
        true => bit as u32,
        false => 0,
    };
    let shared = right(3, b's', libc::MAP_SHARED);
    Some(Mapped {
        start,
        length: end.checked_sub(start)?,
        offset,
        inode: (device, inode),
        prot: right(0, b'r', libc::PROT_READ)
            | right(1, b'w', libc::PROT_WRITE)
            | right(2, b'x', libc::PROT_EXEC),
        flags: if shared != 0 {
            shared
        } else {
            libc::MAP_PRIVATE as u32
        },
        path: path.to_owned(),
    })
}

/// Field 47 of a `stat` line; none if it is hidden.
fn start_of_heap(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let start = fields.split_whitespace().nth(47 - 3)?.parse().ok()?;
    (start != 0).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_place_rights_and_file() {
        let line = "7f00-7f30 rw-s 00001000 fe:0a 123                        /tmp/a b";
        let expected = Mapped {
            start: 0x7f00,
            length: 0x30,
            offset: 0x1000,
            inode: (0xfe << 32 | 0xa, 123),
            prot: 3,
            flags: 1,
            path: "/tmp/a b".into(),
        };
        assert_eq!(mapped(line), Some(expected));
        let anonymous = mapped("10-20 ---p 00000000 00:00 0 ").expect("a mapping");
        assert_eq!((anonymous.prot, anonymous.flags), (0, 2));
        assert_eq!(anonymous.path, "");
    }

    #[test]
    fn this_process_has_a_stack_and_a_heap() {
        let own = Existing::of(std::process::id()).expect("it runs");
        assert!(own.mappings.iter().any(|one| one.path == "[stack]"));
        assert!(own.heap.is_some());
        assert!(Existing::of(u32::MAX).is_none());
    }
}
