//! The user's terminal while QEMU uses it.

use std::io::{self, IsTerminal};
use std::os::fd::AsRawFd;

/// The terminal's settings, restored when this is dropped. QEMU restores them too, unless it is
/// killed.
pub(crate) struct Terminal {
    settings: libc::termios,
    flags: libc::c_int,
}

impl Terminal {
    /// The settings of standard input, if it is a terminal.
    pub(crate) fn save() -> Option<Terminal> {
        let stdin = io::stdin();
        if !stdin.is_terminal() {
            return None;
        }
        let stdin = stdin.as_raw_fd();
        // SAFETY: zeroed settings are valid, and filled by the call; the descriptor is open.
        unsafe {
            let mut settings: libc::termios = std::mem::zeroed();
            let flags = libc::fcntl(stdin, libc::F_GETFL);
            (libc::tcgetattr(stdin, &mut settings) == 0 && flags >= 0)
                .then_some(Terminal { settings, flags })
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let stdin = io::stdin().as_raw_fd();
        // SAFETY: the settings are those that the terminal had; the descriptor is open.
        unsafe {
            libc::tcsetattr(stdin, libc::TCSANOW, &self.settings);
            libc::fcntl(stdin, libc::F_SETFL, self.flags);
        }
    }
}
