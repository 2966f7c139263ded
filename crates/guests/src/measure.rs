//! The cost of operations: the programs of `measure/`, run in a guest.

use crate::boot::{Console, run};
use crate::{Ended, Error, Files, Guest, Library, Machine, Program, compile, source};
use std::time::{Duration, Instant};

/// An operation that a program measures.
#[derive(Debug, PartialEq, Eq)]
pub struct Operation {
    /// The program's name.
    pub name: &'static str,
    /// The operation in words.
    pub about: &'static str,
    /// The kind of tasks that do it together, where operations are counted by the second.
    pub tasks: Option<&'static str>,
}

/// All measured operations.
pub const OPERATIONS: [Operation; 10] = [
    operation("call", "system call that does nothing", Some("threads")),
    operation(
        "map",
        "mmap and munmap of 128 MiB, untouched",
        Some("threads"),
    ),
    operation("touch", "first touch of a page", Some("threads")),
    operation("unmap", "munmap, per touched page", None),
    operation("brk", "brk up and down", Some("processes")),
    operation("fork", "fork, exec and wait", Some("processes")),
    operation("exit", "fork, exit and wait", Some("processes")),
    operation("pipe", "byte through a pipe and back", Some("processes")),
    operation("switch", "context switch, by pipes", Some("processes")),
    operation("futex", "futex wake of nobody", Some("threads")),
];

const fn operation(
    name: &'static str,
    about: &'static str,
    tasks: Option<&'static str>,
) -> Operation {
    Operation { name, about, tasks }
}

/// The numbers of CPUs that rates are for: more would take turns on computers with two.
pub const CPUS: [u32; 2] = [1, 2];

/// Instructions of one operation, from 1,000 samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The fewest.
    pub min: u64,
    pub median: u64,
}

/// The cost of an operation, or why it is not known.
pub type Found<T> = Result<T, String>;

/// The programs, compiled.
pub struct Programs {
    files: Files,
    /// The folder of the executables.
    _folder: tempfile::TempDir,
}

/// The time that a guest may take: it hangs if it takes longer.
const LIMIT: Duration = Duration::from_secs(120);
/// The time for which operations are counted.
const SPAN: &str = "500";
/// Runs programs one after the other; a shell's loop over its arguments.
const ALL: &str = "for program; do $program; done";

impl Programs {
    /// Compiles the programs.
    ///
    /// # Errors
    /// Fails if a compiler or busybox is missing.
    pub fn build() -> Result<Self, Error> {
        let folder = tempfile::tempdir().map_err(Error::at(std::env::temp_dir()))?;
        let mut files = Files::with_busybox()?;
        for Operation { name, .. } in &OPERATIONS {
            let program = folder.path().join(name);
            compile(
                &source(&format!("measure/{name}.c")),
                &program,
                Library::Musl,
            )?;
            files.add(&program, &format!("measure/{name}"))?;
        }
        Ok(Programs {
            files,
            _folder: folder,
        })
    }

    /// The instructions that `guest` takes for each operation: the same in each run.
    ///
    /// # Errors
    /// Fails if guests cannot be started, not if they fail.
    pub fn costs(&self, guest: &Guest, stop: &dyn Fn() -> bool) -> Result<Vec<Found<Cost>>, Error> {
        let machine = Machine {
            counted: true,
            ..Machine::default()
        };
        let all: Vec<&Operation> = OPERATIONS.iter().collect();
        let texts = self.run(guest, &machine, &all, "", stop)?;
        Ok(texts
            .iter()
            .zip(all)
            .map(|(text, one)| cost(text, one))
            .collect())
    }

    /// The number of operations that `guest` does in a second on `cpus` CPUs, with as many tasks;
    /// none for operations that are not counted so.
    ///
    /// # Errors
    /// Fails if guests cannot be started, not if they fail.
    pub fn rates(
        &self,
        guest: &Guest,
        cpus: u32,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Option<Found<f64>>>, Error> {
        let machine = Machine {
            cpus,
            ..Machine::default()
        };
        let counted = |one: &&Operation| one.tasks.is_some();
        let some: Vec<&Operation> = OPERATIONS.iter().filter(counted).collect();
        let arguments = format!(" rate {cpus} {SPAN}");
        let mut texts = self
            .run(guest, &machine, &some, &arguments, stop)?
            .into_iter();
        let found = |one: &Operation| {
            one.tasks
                .and_then(|_| texts.next().map(|text| rate(&text, one)))
        };
        Ok(OPERATIONS.iter().map(found).collect())
    }

    /// The output of the programs of `operations`. Linux runs all in one guest; on scalevm's
    /// kernel, which may fail, each program has a guest of its own.
    fn run(
        &self,
        guest: &Guest,
        machine: &Machine,
        operations: &[&Operation],
        arguments: &str,
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<Found<String>>, Error> {
        let line = |one: &&Operation| format!("/measure/{}{arguments}", one.name);
        let lines: Vec<String> = operations.iter().map(line).collect();
        match guest {
            Guest::Ours { .. } => {
                let alone = |line: &String| {
                    let words = Vec::from_iter(line.split(' '));
                    self.printed(guest, machine, &Program::new(words[0], &words), stop)
                };
                lines.iter().map(alone).collect()
            }
            Guest::Linux { .. } => {
                let shell = ["sh", "-c", ALL, "sh"].map(str::to_owned);
                let program = Program::new("sh", shell.iter().chain(&lines));
                let text = self.printed(guest, machine, &program, stop)?;
                Ok(operations.iter().map(|_| text.clone()).collect())
            }
        }
    }

    /// The output of `program`, or how it ended instead.
    fn printed(
        &self,
        guest: &Guest,
        machine: &Machine,
        program: &Program,
        stop: &dyn Fn() -> bool,
    ) -> Result<Found<String>, Error> {
        let start = Instant::now();
        let mut text = Vec::new();
        let stop = || stop() || start.elapsed() > LIMIT;
        let console = Console::Into(&mut text);
        let ended = run(
            guest,
            machine,
            &self.files,
            program,
            console,
            &stop,
            &mut |_| (),
        )?;
        let text = String::from_utf8_lossy(&text).into_owned();
        Ok(match ended {
            Ended::Exit(0) => Ok(text),
            Ended::Exit(code) => Err(format!("exit {code}: {}", text.trim())),
            Ended::Panic(panic) => Err(format!("panic: {}", panic.message)),
            Ended::Silently => Err("the machine stopped".into()),
            Ended::Stopped => Err(format!("no end within {} s", LIMIT.as_secs())),
        })
    }
}

/// The line `exact NAME MIN MEDIAN`.
fn cost(text: &Found<String>, one: &Operation) -> Found<Cost> {
    match numbers(text, "exact", one)?[..] {
        [min, median] => Ok(Cost {
            min: min as u64,
            median: median as u64,
        }),
        _ => Err(silent()),
    }
}

/// The line `rate NAME TASKS RATE`.
fn rate(text: &Found<String>, one: &Operation) -> Found<f64> {
    match numbers(text, "rate", one)?[..] {
        [_, rate] => Ok(rate),
        _ => Err(silent()),
    }
}

/// The numbers of the line that begins with `kind` and the operation's name.
fn numbers(text: &Found<String>, kind: &str, one: &Operation) -> Found<Vec<f64>> {
    let text = text.as_ref().map_err(String::clone)?;
    let words = text
        .lines()
        .map(|line| Vec::from_iter(line.split_whitespace()));
    let mut line = words.filter(|words| words.len() == 4 && words[..2] == [kind, one.name]);
    let line = line.next().ok_or_else(silent)?;
    let number = |word: &&str| word.parse::<f64>().map_err(|_| silent());
    line[2..].iter().map(number).collect()
}

fn silent() -> String {
    "the program printed no figure".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "noise\nexact call 1 2\nexact map 7\nrate call 2 1.5e3\nexact fork x 1\n";

    #[test]
    fn figures_are_found_among_other_lines() {
        let text = Ok(TEXT.to_owned());
        let [call, map, _, _, _, fork, ..] = &OPERATIONS;
        assert_eq!(cost(&text, call), Ok(Cost { min: 1, median: 2 }));
        assert_eq!(rate(&text, call), Ok(1500.0));
        for missing in [map, fork] {
            assert_eq!(cost(&text, missing), Err(silent()));
        }
        let failed = Err("exit 127: ".to_owned());
        assert_eq!(rate(&failed, call), Err("exit 127: ".into()));
    }

    #[test]
    fn each_program_has_a_source_and_says_its_name() {
        for one in &OPERATIONS {
            let path = source(&format!("measure/{}.c", one.name));
            let text = std::fs::read_to_string(&path).expect("a source");
            assert!(text.contains(&format!("{{ \"{}\", ", one.name)), "{path:?}");
        }
    }
}
