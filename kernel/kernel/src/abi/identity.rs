//! The caller's identity, and the system's.

use super::{Answer, Arguments};
use crate::process::Thread;
use crate::program::random_word;
use crate::version::{NODE, RELEASE, VERSION};
use core::ffi::c_char;
use linux_raw_sys::system::new_utsname;

pub fn getpid(thread: &mut Thread, _: Arguments) -> Answer {
    Ok(thread.process.pid as usize)
}

pub fn getppid(thread: &mut Thread, _: Arguments) -> Answer {
    Ok(thread.process.family.parent_number() as usize)
}

pub fn uname(thread: &mut Thread, [to, ..]: Arguments) -> Answer {
    let text = |text: &str| -> [c_char; 65] {
        let mut bytes = text.bytes();
        core::array::from_fn(|_| bytes.next().unwrap_or(0) as c_char)
    };
    let name = new_utsname {
        sysname: text("Linux"),
        nodename: text(NODE),
        release: text(RELEASE),
        version: text(VERSION),
        machine: text("x86_64"),
        domainname: text("(none)"),
    };
    thread.write(to, name)?;
    Ok(0)
}

pub fn getrandom(thread: &mut Thread, [to, bytes, ..]: Arguments) -> Answer {
    for at in (0..bytes).step_by(8) {
        let word = random_word().to_le_bytes();
        thread.write_bytes(to + at, &word[..(bytes - at).min(8)])?;
    }
    Ok(bytes)
}
