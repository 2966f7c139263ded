//! QEMU's command line.

use crate::{Error, Guest, Machine, tool};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files of one run, in a folder of their own.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Result<Place, Error> {
        let folder = tempfile::Builder::new().prefix("scalevm-guest-").tempdir();
        folder.map(Place).map_err(Error::at(std::env::temp_dir()))
    }

    /// The guest's first process.
    pub(crate) fn init(&self) -> PathBuf {
        self.0.path().join("init")
    }

    /// The archive of the guest's files.
    pub(crate) fn archive(&self) -> PathBuf {
        self.0.path().join("files")
    }

    /// The text of the second serial line.
    pub(crate) fn report(&self) -> PathBuf {
        self.0.path().join("report")
    }

    /// The disk for swap space.
    pub(crate) fn disk(&self) -> PathBuf {
        self.0.path().join("swap")
    }
}

/// The command that runs `guest` on `machine`; the console is QEMU's standard input and output.
pub(crate) fn command(
    guest: &Guest,
    machine: &Machine,
    place: &Place,
    terminal: bool,
) -> Result<Command, Error> {
    let mut command = Command::new(tool::QEMU.find()?);
    command
        .args("-nodefaults -display none -no-reboot -machine q35".split(' '))
        .args("-device isa-debug-exit,iobase=0xf4,iosize=4".split(' '))
        .args(["-smp", &machine.cpus.to_string()])
        .args(["-m", &format!("{}K", machine.memory >> 10)])
        .arg("-kernel")
        .arg(guest.file())
        .arg("-initrd")
        .arg(place.archive())
        .args(["-append", &guest.words()])
        .args(console(terminal))
        .arg("-chardev")
        .arg(with_file("file,id=report,path=", &place.report()))
        .args(["-serial", "chardev:report"])
        .args(clock(machine));
    if machine.swap.is_some() {
        let disk = with_file("if=virtio,format=raw,file=", &place.disk());
        command.arg("-drive").arg(disk);
    }
    if machine.gdb {
        command.args(["-S", "-gdb", "tcp:localhost:1234"]);
    }
    Ok(command)
}

/// Ctrl-C is the guest's. A terminal is also a way to QEMU's monitor: Ctrl-A, then x, ends it.
fn console(terminal: bool) -> Vec<&'static str> {
    if terminal {
        vec![
            "-chardev",
            "stdio,id=console,signal=off,mux=on",
            "-serial",
            "chardev:console",
            "-mon",
            "chardev=console,mode=readline",
        ]
    } else {
        vec![
            "-chardev",
            "stdio,id=console,signal=off",
            "-serial",
            "chardev:console",
        ]
    }
}

fn clock(machine: &Machine) -> impl Iterator<Item = &'static str> {
    let counted = "-accel tcg -icount shift=0,sleep=off -seed 1 -rtc base=2020-01-01,clock=vm";
    let free = "-accel tcg,thread=multi";
    let clock = if machine.counted { counted } else { free };
    clock.split(' ').chain(["-cpu", "qemu64"])
}

/// A comma in a value is written twice.
fn with_file(before: &str, file: &Path) -> OsString {
    OsString::from(format!(
        "{before}{}",
        file.display().to_string().replace(',', ",,")
    ))
}
