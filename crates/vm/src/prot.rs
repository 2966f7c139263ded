//! The rights of a task to a page.

use core::fmt;
use machine::{Access, pte};

/// A set of rights.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Prot(u8);

impl Prot {
    /// Nothing.
    pub const NONE: Prot = Prot::new(false, false, false);
    /// Reading.
    pub const READ: Prot = Prot::new(true, false, false);
    /// Reading and writing.
    pub const READ_WRITE: Prot = Prot::new(true, true, false);
    /// Reading and execution.
    pub const READ_EXECUTE: Prot = Prot::new(true, false, true);

    const READ_BIT: u8 = 1;
    const WRITE_BIT: u8 = 2;
    const EXECUTE_BIT: u8 = 4;

    /// The rights to read, to write and to execute.
    pub const fn new(reads: bool, writes: bool, executes: bool) -> Self {
        let mut bits = if reads { Self::READ_BIT } else { 0 };
        if writes {
            bits |= Self::WRITE_BIT;
        }
        if executes {
            bits |= Self::EXECUTE_BIT;
        }
        Prot(bits)
    }

    /// Returns true if anything is allowed. Then tasks can read: x86 has no pages that may only be
    /// written or executed.
    pub const fn is_accessible(self) -> bool {
        self.0 != 0
    }

    /// Returns true if reading is allowed explicitly.
    pub const fn reads(self) -> bool {
        self.0 & Self::READ_BIT != 0
    }

    /// Returns true if writing is allowed.
    pub const fn writes(self) -> bool {
        self.0 & Self::WRITE_BIT != 0
    }

    /// Returns true if execution is allowed.
    pub const fn executes(self) -> bool {
        self.0 & Self::EXECUTE_BIT != 0
    }

    /// The rights without that to write. What tasks may write they may read.
    pub(crate) const fn read_only(self) -> Self {
        if self.writes() {
            Prot(self.0 & !Self::WRITE_BIT | Self::READ_BIT)
        } else {
            self
        }
    }

    /// Returns true if a task may make this access.
    #[inline]
    pub const fn allows(self, access: Access) -> bool {
        match access {
            Access::Read => self.is_accessible(),
            Access::Write => self.writes(),
            Access::Execute => self.executes(),
        }
    }

    /// The set in the low three bits of a byte, for [`Prot::from_byte`].
    pub(crate) const fn to_byte(self) -> u8 {
        self.0
    }

    pub(crate) const fn from_byte(byte: u8) -> Self {
        Prot(byte)
    }

    /// The rights as page-table bits. A page without any stays present, so that its frame is not
    /// forgotten, but no task can use it.
    pub(crate) const fn bits(self) -> u64 {
        let user = if self.is_accessible() { pte::USER } else { 0 };
        let writable = if self.writes() { pte::WRITABLE } else { 0 };
        let no_execute = if self.executes() { 0 } else { pte::NO_EXECUTE };
        user | writable | no_execute
    }

    /// All bits that [`Prot::bits`] may set.
    pub(crate) const MASK: u64 = pte::USER | pte::WRITABLE | pte::NO_EXECUTE;
}

impl fmt::Debug for Prot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Prot {
    /// Writes the rights in the form of `/proc/PID/maps`: `rwx` or `r--`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |on, letter| if on { letter } else { '-' };
        write!(
            f,
            "{}{}{}",
            letter(self.reads(), 'r'),
            letter(self.writes(), 'w'),
            letter(self.executes(), 'x')
        )
    }
}
