//! build: compile one unit after the other, as each of the jobs of `make -jN` does.
//!
//! A task is one of the N jobs. As processes, each job has a make of its own, as in a recursive
//! make; as threads, all share one make, which forks its compilers side by side. An iteration: make
//! forks, the child becomes the compiler ([`compile`]), writes an output file and ends; make waits,
//! notes that in its memory, and checks that the output is this unit's.
//!
//! It is not from will-it-scale: the case studies measure this by building a kernel.

mod compiler;

pub use compiler::compile;

use crate::steps::{expect_byte, with_mapping};
use crate::unit::Unit;
use crate::{Backing, Call, Counter, Error, Feature, Needs, Program, System, Workload};

/// Bytes of its own that make has written: a fork copies them. GNU make with a small Makefile takes
/// 161 faults in all.
const MAKE: usize = 256 << 10;
/// Pages of them that make writes after each job; the fork has made them read-only.
const NOTES: usize = 16;
/// Bytes of an output file.
const OUTPUT: usize = 32 << 10;

pub(crate) const WORKLOAD: Workload = Workload {
    name: "build",
    description: "Compile jobs of make -jN: fork, exec, shared text, faults, exit",
    unit: "jobs",
    needs: Needs {
        files: true,
        brk: true,
        protect: true,
        discard: false,
        memory: MAKE + compiler::MEMORY + OUTPUT,
        features: &[Feature::Compiler],
    },
    size: 0,
    body: crate::Body::Build,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter) -> Result<(), Error> {
    let page = system.page_size();
    let first = Unit::first_of(system.number());
    with_mapping(system, MAKE, Backing::Anonymous, |system, memory| {
        let mut make = Make { memory, note: 1 };
        for address in (memory..memory + MAKE).step_by(page) {
            system.write(address, make.note)?;
        }
        for number in 0.. {
            make.job(system, first.plus(number))?;
            if !tick.add(1) {
                break;
            }
        }
        Ok(())
    })
}

/// The process that starts compilers.
struct Make {
    /// The address of its memory.
    memory: usize,
    /// Its last note.
    note: u8,
}

impl Make {
    /// Compiles `unit` in a child.
    fn job<S: System>(&mut self, system: &mut S, unit: Unit) -> Result<(), Error> {
        let output = system.file(OUTPUT)?;
        let compiler = system.start(Program::Compiler {
            unit: unit.number(),
            output: &output,
        })?;
        let code = system.wait(compiler)?;
        Error::unless(Call::Exec, u64::from(code), 0)?;
        self.take_note(system)?;
        let page = system.page_size();
        with_mapping(
            system,
            OUTPUT,
            Backing::SharedFile(&output),
            |system, at| {
                (0..OUTPUT / page).try_for_each(|number| {
                    expect_byte(system, at + number * page, unit.output(number))
                })
            },
        )
    }

    /// Writes to make's own memory, which must be unchanged.
    fn take_note<S: System>(&mut self, system: &mut S) -> Result<(), Error> {
        let before = self.note;
        self.note = before % u8::MAX + 1; // never 0, the content of a lost page
        for number in 0..NOTES {
            let address = self.memory + number * system.page_size();
            expect_byte(system, address, before)?;
            system.write(address, self.note)?;
        }
        Ok(())
    }
}
