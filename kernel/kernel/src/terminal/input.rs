//! The typed input: a line that is being edited, and input that is ready to be read.

use super::Settings;
use crate::process::Signal;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use linux_raw_sys::general::*;

/// The most bytes that wait to be read; further ones are lost.
const MOST: usize = 4096;

/// The typed input.
#[derive(Default)]
pub struct Input {
    /// The line so far.
    line: Vec<u8>,
    /// The ready input: bytes, and ends of input.
    ready: VecDeque<Item>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Item {
    Byte(u8),
    /// The end of input: a read ends here, without bytes if none came before.
    End,
}

impl Input {
    /// The number of bytes and ends that are ready.
    pub fn count(&self) -> usize {
        self.ready.len()
    }

    /// Fills `to`, up to the end of a line if lines are read. Returns the number of bytes; `None`
    /// if nothing is ready.
    pub fn take(&mut self, to: &mut [u8], is_line: bool) -> Option<usize> {
        if self.ready.is_empty() {
            return None;
        }
        let mut count = 0;
        while count < to.len() {
            match self.ready.pop_front() {
                Some(Item::Byte(byte)) => {
                    to[count] = byte;
                    count += 1;
                    if is_line && byte == b'\n' {
                        break;
                    }
                }
                Some(Item::End) | None => break,
            }
        }
        Some(count)
    }

    /// Makes the edited line ready as it is.
    pub fn end_line(&mut self) {
        self.ready.extend(self.line.drain(..).map(Item::Byte));
    }

    /// Takes a typed byte, and appends its echo to `echo`. Returns the signal that the byte causes.
    pub fn receive(&mut self, byte: u8, settings: &Settings, echo: &mut Vec<u8>) -> Option<Signal> {
        let byte = match byte {
            b'\r' if settings.ends_lines() => b'\n',
            byte => byte,
        };
        let is = |which| byte != 0 && byte == settings.character(which);
        let signal = match byte {
            _ if !settings.has(ISIG) => None,
            _ if is(VINTR) => Some(Signal::INTERRUPT),
            _ if is(VQUIT) => Some(Signal::QUIT),
            _ if is(VSUSP) => Some(Signal::TERMINAL_STOP),
            _ => None,
        };
        if signal.is_some() {
            show(byte, settings, echo);
            if !settings.has(NOFLSH) {
                *self = Input::default();
            }
            return signal;
        }
        if self.line.len() + self.ready.len() >= MOST {
            return None;
        }
        match byte {
            _ if !settings.has(ICANON) => {
                self.ready.push_back(Item::Byte(byte));
                show(byte, settings, echo);
            }
            _ if is(VERASE) => self.erase(1, settings, echo),
            _ if is(VKILL) => self.erase(self.line.len(), settings, echo),
            _ if is(VEOF) => {
                self.end_line();
                self.ready.push_back(Item::End);
            }
            byte => {
                self.line.push(byte);
                show(byte, settings, echo);
                if byte == b'\n' {
                    self.end_line();
                }
            }
        }
        None
    }

    fn erase(&mut self, count: usize, settings: &Settings, echo: &mut Vec<u8>) {
        for _ in 0..count.min(self.line.len()) {
            let byte = self.line.pop();
            if settings.has(ECHO) {
                // A control character is shown as two.
                let width = if byte.is_some_and(|it| it < b' ') {
                    2
                } else {
                    1
                };
                (0..width).for_each(|_| echo.extend(b"\x08 \x08"));
            }
        }
    }
}

/// Appends the echo of a byte.
fn show(byte: u8, settings: &Settings, echo: &mut Vec<u8>) {
    match byte {
        _ if !settings.has(ECHO) => {}
        b'\n' if settings.expands_lines() => echo.extend(b"\r\n"),
        b'\n' | b'\t' => echo.push(byte),
        0..b' ' if settings.has(ECHOCTL) => echo.extend([b'^', byte + 64]),
        byte => echo.push(byte),
    }
}
