//! Operations of some open files only: the terminal's, and counting readable bytes.

use super::{Answer, Arguments, Errno};
use crate::fs::{Settings, Terminal, WindowSize};
use crate::process::{Process, Thread};
use crate::system::system;
use linux_raw_sys::general::{TCIFLUSH, TCIOFLUSH};
use linux_raw_sys::ioctl::*;

pub fn ioctl(thread: &mut Thread, [fd, request, value, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    if request as u32 == FIONREAD
        && let Some(count) = file.available()
    {
        thread.write(value, count as u32)?;
        return Ok(0);
    }
    match file.is_terminal() {
        true => control(thread, &system().terminal, request as u32, value),
        false => Err(Errno::NOTTY),
    }
}

fn control(thread: &mut Thread, terminal: &Terminal, request: u32, value: usize) -> Answer {
    let process = thread.process.clone();
    match request {
        TCGETS => thread.write(value, terminal.settings())?,
        TCSETS | TCSETSW | TCSETSF => {
            let settings: Settings = thread.read(value)?;
            terminal.set(settings, request == TCSETSF)?;
        }
        TIOCGWINSZ => thread.write(value, terminal.window())?,
        TIOCSWINSZ => {
            let size: WindowSize = thread.read(value)?;
            terminal.set_window(size);
        }
        // Printed bytes are gone at once.
        TCSBRK | TCXONC => {}
        TCFLSH if matches!(value as u32, TCIFLUSH | TCIOFLUSH) => terminal.flush(),
        TCFLSH => {}
        TIOCSCTTY => {
            terminal.become_of(&process)?;
            system().terminal.ask();
        }
        TIOCNOTTY => {
            own(terminal, &process)?;
            terminal.give_up(&process);
        }
        TIOCGPGRP => {
            own(terminal, &process)?;
            thread.write(value, terminal.foreground())?;
        }
        TIOCSPGRP => {
            let group: u32 = thread.read(value)?;
            terminal.set_foreground(group, &process)?;
        }
        TIOCGSID => {
            own(terminal, &process)?;
            thread.write(value, terminal.session())?;
        }
        _ => return Err(Errno::NOTTY),
    }
    Ok(0)
}

/// Refuses if it is not the process's terminal.
fn own(terminal: &Terminal, process: &Process) -> Result<(), Errno> {
    match terminal.is_of(process) {
        true => Ok(()),
        false => Err(Errno::NOTTY),
    }
}
