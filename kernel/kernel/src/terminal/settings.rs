//! The terminal's treatment of input and output (`termios`).

use crate::process::Plain;
use linux_raw_sys::general::*;

/// The settings, as the kernel has them in `struct termios`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    input: u32,
    output: u32,
    control: u32,
    local: u32,
    /// The line discipline, then the special characters, and one more byte.
    characters: [u8; 20],
}

/// Where the special characters begin, after the line discipline.
const FIRST: usize = 1;

/// Rows, columns, and pixels of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct WindowSize(pub [u16; 4]);

// SAFETY: numbers, without padding.
unsafe impl Plain for Settings {}
// SAFETY: numbers, without padding.
unsafe impl Plain for WindowSize {}

impl Settings {
    /// A terminal's initial settings.
    pub fn usual() -> Self {
        let mut characters = [0; 20];
        for (which, character) in [
            (VINTR, 3),
            (VQUIT, 28),
            (VERASE, 127),
            (VKILL, 21),
            (VEOF, 4),
            (VMIN, 1),
            (VSTART, 17),
            (VSTOP, 19),
            (VSUSP, 26),
            (VREPRINT, 18),
            (VDISCARD, 15),
            (VWERASE, 23),
            (VLNEXT, 22),
        ] {
            characters[FIRST + which as usize] = character;
        }
        Settings {
            input: ICRNL | IXON,
            output: OPOST | ONLCR,
            control: B38400 | CS8 | CREAD | HUPCL,
            local: ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
            characters,
        }
    }

    /// How input is read: true for lines; otherwise the least number of bytes, and the tenths of a
    /// second that they may take.
    pub fn reading(&self) -> (bool, u8, u8) {
        let is_line = self.local & ICANON != 0;
        (is_line, self.character(VMIN), self.character(VTIME))
    }

    /// A special character; 0 for none.
    pub fn character(&self, which: u32) -> u8 {
        self.characters[FIRST + which as usize]
    }

    /// Returns true if a local flag is set.
    pub fn has(&self, flag: u32) -> bool {
        self.local & flag != 0
    }

    /// Returns true if a typed carriage return becomes the end of a line.
    pub fn ends_lines(&self) -> bool {
        self.input & ICRNL != 0
    }

    /// Returns true if the end of a line moves the cursor to the first column, not only down.
    pub fn expands_lines(&self) -> bool {
        self.output & OPOST != 0 && self.output & ONLCR != 0
    }

    /// Returns true if the background may not print.
    pub fn stops_output(&self) -> bool {
        self.local & TOSTOP != 0
    }
}
