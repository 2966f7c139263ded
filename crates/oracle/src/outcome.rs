//! Outcomes of steps, and when two of them agree.

use crate::address::Address;
use crate::step::Prot;
use std::{fmt, slice};

/// The outcome of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success without a value.
    Done,
    /// A mapping at this address of the window.
    At(Address),
    /// A mapping at an address that the system chose.
    Somewhere,
    /// A number: the value loaded, bytes transferred, the heap's end.
    Value(u64),
    /// One of these numbers, at the system's choice.
    OneOf(Vec<u64>),
    /// The call failed.
    Errno(i32),
    /// The access was refused.
    Segv,
    /// There is no page: the access lies beyond the file's end.
    Bus,
    /// The bytes read.
    Bytes(Vec<u8>),
    /// The state of each page: in memory or not.
    Core(Vec<Core>),
    /// The mapped regions.
    Regions(Vec<Region>),
    Pages(Vec<Content>),
    /// The system refused the step for lack of this resource.
    Refused(String),
    /// The system has crashed with this message; it can be reset.
    Crashed(String),
    /// The system did not finish in time; it can be reset.
    Endless,
}

/// The state of a page: in memory or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Core {
    /// In memory.
    In,
    /// Not in memory.
    Out,
    /// Either: the system chooses.
    Maybe,
}

/// The content of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The page must not be read.
    Segv,
    /// There is no page.
    Bus,
    /// Zeroes except for these bytes, by offset.
    Bytes(Vec<(u16, u8)>),
    /// One of these, at the system's choice.
    OneOf(Vec<Vec<(u16, u8)>>),
}

/// Consecutive pages with equal rights and one backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first address.
    pub start: Address,
    /// The number of pages.
    pub pages: u64,
    /// The rights.
    pub prot: Prot,
    /// True if other processes see writes.
    pub shared: bool,
    /// The file, and the first mapped page of it.
    pub file: Option<(u8, u64)>,
}

impl Region {
    /// Merges `next` if it continues this region with equal attributes.
    pub fn absorb(&mut self, next: &Region) -> bool {
        let goes_on = Region {
            start: self.start.plus(self.pages * crate::address::PAGE),
            file: self.file.map(|(file, page)| (file, page + self.pages)),
            pages: next.pages,
            ..*self
        };
        let same = goes_on == *next;
        self.pages += if same { next.pages } else { 0 };
        same
    }
}

impl Outcome {
    /// Returns true if both may result from one step: they are equal as far as they are defined.
    pub fn agrees(&self, other: &Outcome) -> bool {
        match (self, other) {
            (Outcome::Core(a), Outcome::Core(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.agrees(*b))
            }
            (Outcome::Pages(a), Outcome::Pages(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.agrees(b))
            }
            _ => self == other || meet(self.numbers(), other.numbers()),
        }
    }

    fn numbers(&self) -> &[u64] {
        match self {
            Outcome::Value(value) => slice::from_ref(value),
            Outcome::OneOf(values) => values,
            _ => &[],
        }
    }
}

impl Core {
    fn agrees(self, other: Core) -> bool {
        self == other || self == Core::Maybe || other == Core::Maybe
    }
}

impl Content {
    fn agrees(&self, other: &Content) -> bool {
        self == other || meet(self.contents(), other.contents())
    }

    fn contents(&self) -> &[Vec<(u16, u8)>] {
        match self {
            Content::Segv | Content::Bus => &[],
            Content::Bytes(bytes) => slice::from_ref(bytes),
            Content::OneOf(contents) => contents,
        }
    }

    /// The content of a whole page.
    pub fn of_page(bytes: &[u8]) -> Vec<(u16, u8)> {
        let bytes = (0..).zip(bytes.iter().copied());
        bytes.filter(|&(_, byte)| byte != 0).collect()
    }
}

/// Returns true if the two have an element in common.
fn meet<T: PartialEq>(these: &[T], those: &[T]) -> bool {
    these.iter().any(|one| those.contains(one))
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Done => f.write_str("ok"),
            Outcome::At(address) => write!(f, "at {address}"),
            Outcome::Somewhere => f.write_str("somewhere"),
            Outcome::Value(value) => write!(f, "{value:#x}"),
            Outcome::OneOf(values) => {
                let values: Vec<_> = values.iter().map(|value| format!("{value:#x}")).collect();
                f.write_str(&values.join(" or "))
            }
            Outcome::Errno(number) => f.write_str(&errno(*number)),
            Outcome::Segv => f.write_str("SIGSEGV"),
            Outcome::Bus => f.write_str("SIGBUS"),
            Outcome::Bytes(bytes) => write!(f, "bytes {}", hex(bytes)),
            Outcome::Core(pages) => {
                let letters = pages.iter().map(|core| match core {
                    Core::In => '1',
                    Core::Out => '0',
                    Core::Maybe => '?',
                });
                write!(f, "in core {}", letters.collect::<String>())
            }
            Outcome::Regions(regions) => list(f, "regions", regions),
            Outcome::Pages(pages) => list(f, "pages", pages),
            Outcome::Refused(why) => write!(f, "refused: {why}"),
            Outcome::Crashed(how) => f.write_str(how),
            Outcome::Endless => f.write_str("the sequence did not end in time"),
        }
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, what: &str, items: &[T]) -> fmt::Result {
    let items: Vec<_> = items.iter().map(T::to_string).collect();
    write!(f, "{what} [{}]", items.join(", "))
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sharing = if self.shared { 's' } else { 'p' };
        let Region {
            start, pages, prot, ..
        } = self;
        write!(f, "{start} {pages}p {prot}{sharing}")?;
        match self.file {
            Some((file, page)) => write!(f, " file {file} @{page}p"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Segv => f.write_str("SIGSEGV"),
            Content::Bus => f.write_str("SIGBUS"),
            Content::Bytes(bytes) => f.write_str(&runs(bytes)),
            Content::OneOf(contents) => {
                let contents: Vec<_> = contents.iter().map(|bytes| runs(bytes)).collect();
                f.write_str(&contents.join(" or "))
            }
        }
    }
}

/// Runs of bytes as `offset:hex`; long ones are cut.
fn runs(bytes: &[(u16, u8)]) -> String {
    let mut runs: Vec<(u16, Vec<u8>)> = Vec::new();
    for &(offset, byte) in bytes {
        match runs.last_mut() {
            Some((start, run)) if usize::from(offset - *start) == run.len() => run.push(byte),
            _ => runs.push((offset, vec![byte])),
        }
    }
    let runs: Vec<_> = runs
        .iter()
        .map(|(start, run)| format!("{start}:{}", hex(run)))
        .collect();
    if runs.is_empty() {
        "zero".into()
    } else {
        runs.join(" ")
    }
}

fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 24;
    let mut text: String = bytes
        .iter()
        .take(SHOWN)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if bytes.len() > SHOWN {
        text += &format!("… ({} bytes)", bytes.len());
    }
    text
}

/// The name of an errno, if memory operations return it.
fn errno(number: i32) -> String {
    let name = match number {
        libc::EPERM => "EPERM",
        libc::EBADF => "EBADF",
        libc::EAGAIN => "EAGAIN",
        libc::ENOMEM => "ENOMEM",
        libc::EACCES => "EACCES",
        libc::EFAULT => "EFAULT",
        libc::EBUSY => "EBUSY",
        libc::EEXIST => "EEXIST",
        libc::ENODEV => "ENODEV",
        libc::EINVAL => "EINVAL",
        libc::EFBIG => "EFBIG",
        libc::EOVERFLOW => "EOVERFLOW",
        libc::ENOSYS => "ENOSYS",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        _ => return format!("errno {number}"),
    };
    name.into()
}
