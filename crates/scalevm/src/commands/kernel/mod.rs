//! `scalevm kernel`: programs on scalevm's own kernel, under QEMU.

mod compare;

use crate::cli::{KernelArgs, KernelCommand};
use baselines::Preset;
use bench::{Failure, interrupt};
use guests::boot::{self, Console};
use guests::{Ended, Files, Guest, Machine, Program, kernel};
use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;

/// The exit code if the guest has none: its kernel panics, or it stops without a word.
const NO_STATUS: u8 = 125;

/// Runs the requested program; the exit code is the program's.
pub fn run(args: &KernelArgs) -> Result<u8, Failure> {
    super::prepare()?;
    if let Some(KernelCommand::Compare(args)) = &args.instead {
        return compare::run(args);
    }
    let mut files = match &args.root {
        Some(root) => Files::of_root(root)?,
        None => Files::with_busybox()?,
    };
    if let Some(folder) = &args.files {
        files.add(folder, "")?;
    }
    let terminal =
        args.program.is_empty() && io::stdin().is_terminal() && io::stdout().is_terminal();
    let program = program(args, terminal, &mut files)?;
    let guest = guest(args.linux.clone(), args.vm, args.strict)?;
    if args.gdb {
        eprintln!(
            "scalevm: waiting for gdb: gdb {} -ex 'target remote :1234'",
            guest.file().display()
        );
    }
    let mut out = io::stdout();
    let console = if terminal {
        Console::Terminal
    } else {
        Console::Into(&mut out)
    };
    let stop = || interrupt::pending().is_some();
    let mut note = |line: &str| eprintln!("scalevm: kernel: {line}");
    let ended = boot::run(
        &guest,
        &machine(args),
        &files,
        &program,
        console,
        &stop,
        &mut note,
    );
    Ok(match ended? {
        Ended::Exit(status) => status,
        Ended::Panic(panic) => {
            eprintln!("scalevm: {panic}");
            NO_STATUS
        }
        Ended::Silently => {
            eprintln!("scalevm: the machine stopped without giving a reason");
            NO_STATUS
        }
        Ended::Stopped => super::finished(),
    })
}

/// The guest's program, and its input.
fn program(args: &KernelArgs, terminal: bool, files: &mut Files) -> Result<Program, Failure> {
    let shell = [OsString::from("sh")];
    let words = if args.program.is_empty() {
        &shell
    } else {
        &args.program[..]
    };
    let mut program = Program::named(words, files)?;
    if terminal {
        program.input = None;
        let kind = env::var_os("TERM").unwrap_or_else(|| "linux".into());
        let mut variable = OsString::from("TERM=");
        variable.push(kind);
        program.environment.push(variable);
    } else if !io::stdin().is_terminal() {
        let mut input = Vec::new();
        let read = io::stdin().read_to_end(&mut input);
        read.map_err(Failure::start("standard input"))?;
        program.input = Some(input);
    }
    Ok(program)
}

fn machine(args: &KernelArgs) -> Machine {
    Machine {
        cpus: args.cpus,
        memory: args.memory,
        swap: args.swap,
        counted: args.icount,
        gdb: args.gdb,
    }
}

/// Linux if there is an image of it, otherwise scalevm's kernel, with that VM.
fn guest(linux: Option<PathBuf>, vm: Option<Preset>, is_strict: bool) -> Result<Guest, Failure> {
    if let Some(image) = linux {
        return if image.is_file() {
            Ok(Guest::Linux { image })
        } else {
            Err(Failure::Unavailable(format!(
                "{}: no such file",
                image.display()
            )))
        };
    }
    if !kernel::executable().exists() && io::stderr().is_terminal() {
        eprintln!("scalevm: building the kernel");
    }
    let strict = is_strict.then(|| "strict".to_owned());
    let words = vm.map(|preset| format!("vm={}", preset.name));
    Ok(Guest::Ours {
        kernel: kernel::build()?,
        words: words.into_iter().chain(strict).collect(),
    })
}
