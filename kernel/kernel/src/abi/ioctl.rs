//! Operations on open files: those of all files, and the terminal's.

use super::file::{has_changes, set_owner};
use super::{Answer, Arguments, Errno};
use crate::process::{Process, READY, Thread};
use crate::terminal::{Settings, TERMINAL, Terminal, WindowSize};
use core::sync::atomic::Ordering;
use linux_raw_sys::general::{O_NONBLOCK, TCIFLUSH, TCIOFLUSH};
use linux_raw_sys::ioctl::*;

pub fn ioctl(thread: &mut Thread, [fd, request, value, ..]: Arguments) -> Answer {
    let file = thread.file(fd)?;
    match request as u32 {
        request @ (FIOCLEX | FIONCLEX) => {
            let mut files = thread.process.files.lock();
            files.get(fd as u32 as usize)?.close_on_exec = request == FIOCLEX;
        }
        FIONBIO => {
            let on: u32 = thread.read(value)?;
            match on {
                0 => file.flags.fetch_and(!O_NONBLOCK, Ordering::Relaxed),
                _ => file.flags.fetch_or(O_NONBLOCK, Ordering::Relaxed),
            };
        }
        FIOASYNC => {
            let is_on = thread.read::<u32>(value)? != 0;
            if has_changes(&file) {
                READY.watch(&file, is_on)?;
            } else if is_on {
                return Err(Errno::NOTTY);
            }
        }
        FIOSETOWN | SIOCSPGRP if file.socket().is_some() => {
            set_owner(&file, thread.read::<i32>(value)?)?;
        }
        FIOGETOWN | SIOCGPGRP if file.socket().is_some() => {
            thread.write(value, file.owner.load(Ordering::Relaxed))?;
        }
        FIONREAD => {
            let count = file.available().ok_or(Errno::NOTTY)?;
            thread.write(value, count as u32)?;
        }
        request => {
            return if file.is_terminal() {
                control(thread, &TERMINAL, request, value)
            } else {
                Err(Errno::NOTTY)
            };
        }
    }
    Ok(0)
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
        // Printed bytes are sent at once.
        TCSBRK | TCXONC => {}
        TCFLSH if matches!(value as u32, TCIFLUSH | TCIOFLUSH) => terminal.flush(),
        TCFLSH => {}
        TIOCSCTTY => {
            terminal.become_of(&process)?;
            TERMINAL.ask();
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

/// Fails if this is not the process's terminal.
fn own(terminal: &Terminal, process: &Process) -> Result<(), Errno> {
    if terminal.is_of(process) {
        Ok(())
    } else {
        Err(Errno::NOTTY)
    }
}
