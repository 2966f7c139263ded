//! A compiler, from its first instruction to its exit.
//!
//! # Sizes
//! `gcc -O2 -c` (12.2, Debian 12) of 758 lines with 8 headers of the C library, seen by `strace -f` and by the
//! tracepoint of page faults: the driver, cc1 and as together take 15,900 faults, 122 mmap, 513 brk, 20 mprotect,
//! 5 munmap. Of cc1's 14,500 faults 9,700 are first writes to mappings, 2,400 to the heap and zeroed
//! data, 1,200 reads of its program, 820 writes to data of it that had been read; cc1 lies in a file of 33 MB.
//! Here is a twentieth of the faults in the same proportions, and what a program maps
//! before `main` in full: 9 files, each in two parts. Memory is given back more often than gcc does, as
//! compilers with other allocators do. Computing takes 8 ms, where a twentieth were 85: so that a job
//! lasts some milliseconds, a tenth of them in the VM when it is not held up. (In seed 002 7.7 % of the CPU
//! time are the system's before its change, 4.3 % after.)

use super::{Files, Input, OUTPUT, Unit};
use crate::steps::{expect_byte, with_mapping};
use crate::{Backing, Error, Prot, System};

/// Nanoseconds that a unit takes to compute.
const COMPUTING: u64 = 8_000_000;
/// Parts in which a unit is compiled.
const PHASES: usize = 8;
/// Pages of the program that run in each.
const TEXT_PAGES: usize = 6;
/// Bytes of the program that are data, and pages of them that are written.
const DATA: usize = 1 << 20;
const DATA_PAGES: usize = 24;
/// Pages of a library that are read.
const LIBRARY_PAGES: usize = 4;
/// Bytes of a library that are data, pages of them that are relocated, and bytes that become read-only
/// then.
const LIBRARY_DATA: usize = 64 << 10;
const RELOCATED_PAGES: usize = 4;
const RELOCATED: usize = 32 << 10;
/// Bytes of the stack, and pages that are used.
const STACK: usize = 128 << 10;
const STACK_PAGES: usize = 4;
/// How often a phase asks for more heap, bytes that it asks for, and pages that it writes.
const HEAP_STEPS: usize = 2;
const HEAP_STEP: usize = 32 << 10;
const HEAP_PAGES: usize = 5;
/// Bytes of an arena, of which each phase has one; pages of it that are written, by up to a half more or fewer; and how
/// many phases later it is given back.
const ARENA: usize = 320 << 10;
const ARENA_PAGES: u64 = 48;
const ARENA_LIFE: usize = 2;

/// Bytes that are touched at most, those of files included.
pub(super) const MEMORY: usize = 8 << 20;

/// What a process does that has become the compiler: compiles unit number `unit` to `output`.
///
/// What it maps is left to its exit.
///
/// # Errors
/// The first call that fails, or page that does not hold what it must.
pub fn compile<S: System>(
    system: &mut S,
    unit: u64,
    inputs: &Files<S::File>,
    output: &S::File,
) -> Result<(), Error> {
    let mut compiler = Compiler {
        page: system.page_size(),
        unit: Unit::of(unit),
        system,
    };
    let text = compiler.load(inputs)?;
    let heap = compiler.system.program_break()?;
    let mut arenas = [None; PHASES];
    for phase in 0..PHASES {
        compiler.run_text(text, phase)?;
        compiler.read_sources(&inputs.sources)?;
        compiler.grow_heap(heap, phase)?;
        arenas[phase] = Some(compiler.fill_arena(phase)?);
        compiler.compute(phase);
        let old = phase.checked_sub(ARENA_LIFE);
        if let Some(arena) = old.and_then(|old| arenas[old].take()) {
            compiler.check_arena(&arena)?;
            compiler.system.unmap(arena.start, ARENA)?;
        }
    }
    (0..PHASES).try_for_each(|phase| compiler.check_heap(heap, phase))?;
    let mut left = arenas.iter().flatten();
    left.try_for_each(|arena| compiler.check_arena(arena))?;
    compiler.write(output)
}

struct Compiler<'a, S> {
    system: &'a mut S,
    unit: Unit,
    /// Bytes in a page.
    page: usize,
}

/// Memory of one phase.
#[derive(Clone, Copy)]
struct Arena {
    start: usize,
    /// Pages that have been written.
    pages: usize,
    /// What they hold.
    byte: u8,
}

impl<S: System> Compiler<'_, S> {
    /// Maps what `exec` and the dynamic linker map, and relocates it; where the text is.
    fn load(&mut self, inputs: &Files<S::File>) -> Result<usize, Error> {
        let program = Backing::PrivateFile(&inputs.program);
        let text = self
            .system
            .map(Input::Program.size(), Prot::Read, program)?;
        let data = self.system.map(DATA, Prot::ReadWrite, program)?;
        self.copy_pages(data, Input::Program, DATA_PAGES)?;
        let stack = self
            .system
            .map(STACK, Prot::ReadWrite, Backing::Anonymous)?;
        self.fill(stack, STACK_PAGES, 1)?;
        for (number, library) in inputs.libraries.iter().enumerate() {
            self.load_library(Input::Library(number), library)?;
        }
        Ok(text)
    }

    fn load_library(&mut self, library: Input, file: &S::File) -> Result<(), Error> {
        let file = Backing::PrivateFile(file);
        let text = self.system.map(library.size(), Prot::Read, file)?;
        let data = self.system.map(LIBRARY_DATA, Prot::ReadWrite, file)?;
        self.copy_pages(data, library, RELOCATED_PAGES)?;
        self.system.protect(data, RELOCATED, Prot::Read)?;
        (0..LIBRARY_PAGES).try_for_each(|page| self.expect_input(text, library, page))
    }

    /// Reads the program's pages of a phase, which lie apart.
    fn run_text(&mut self, text: usize, phase: usize) -> Result<(), Error> {
        let apart = Input::Program.size() / self.page / (PHASES * TEXT_PAGES);
        (phase * TEXT_PAGES..(phase + 1) * TEXT_PAGES)
            .try_for_each(|number| self.expect_input(text, Input::Program, number * apart))
    }

    fn read_sources(&mut self, sources: &S::File) -> Result<(), Error> {
        let len = Input::Sources.size();
        let start = self
            .system
            .map(len, Prot::Read, Backing::PrivateFile(sources))?;
        (0..len / self.page).try_for_each(|page| self.expect_input(start, Input::Sources, page))?;
        self.system.unmap(start, len)
    }

    /// Moves the end of the heap, which begins at `heap`, as often as a phase does.
    fn grow_heap(&mut self, heap: usize, phase: usize) -> Result<(), Error> {
        for start in heap_steps(heap, phase) {
            self.system.set_program_break(start + HEAP_STEP)?;
            self.fill(start, HEAP_PAGES, phase as u8 + 1)?;
        }
        Ok(())
    }

    fn check_heap(&mut self, heap: usize, phase: usize) -> Result<(), Error> {
        heap_steps(heap, phase)
            .try_for_each(|start| self.expect(start, HEAP_PAGES, phase as u8 + 1))
    }

    fn fill_arena(&mut self, phase: usize) -> Result<Arena, Error> {
        let arena = Arena {
            start: self
                .system
                .map(ARENA, Prot::ReadWrite, Backing::Anonymous)?,
            pages: self.unit.vary(ARENA_PAGES, phase as u64) as usize,
            byte: self.unit.output(phase),
        };
        self.fill(arena.start, arena.pages, arena.byte)?;
        Ok(arena)
    }

    fn check_arena(&mut self, arena: &Arena) -> Result<(), Error> {
        self.expect(arena.start, arena.pages, arena.byte)
    }

    fn compute(&mut self, phase: usize) {
        let part = COMPUTING / PHASES as u64;
        self.system
            .compute(self.unit.vary(part, (PHASES + phase) as u64));
    }

    fn write(&mut self, output: &S::File) -> Result<(), Error> {
        let (page, unit) = (self.page, self.unit);
        with_mapping(
            self.system,
            OUTPUT,
            Backing::SharedFile(output),
            |system, at| {
                (0..OUTPUT / page)
                    .try_for_each(|number| system.write(at + number * page, unit.output(number)))
            },
        )
    }

    /// Writes to pages of a file that is mapped privately: they must be as the file has them, and
    /// are this process's own then.
    fn copy_pages(&mut self, start: usize, file: Input, pages: usize) -> Result<(), Error> {
        for page in 0..pages {
            self.expect_input(start, file, page)?;
            self.system.write(start + page * self.page, 1)?;
        }
        Ok(())
    }

    fn expect_input(&mut self, start: usize, file: Input, page: usize) -> Result<(), Error> {
        expect_byte(self.system, start + page * self.page, file.byte(page))
    }

    /// Writes `byte` to new pages.
    fn fill(&mut self, start: usize, pages: usize, byte: u8) -> Result<(), Error> {
        (0..pages).try_for_each(|page| self.system.write(start + page * self.page, byte))
    }

    /// Reads pages that hold `byte`.
    fn expect(&mut self, start: usize, pages: usize, byte: u8) -> Result<(), Error> {
        (0..pages).try_for_each(|page| expect_byte(self.system, start + page * self.page, byte))
    }
}

/// Where the parts of the heap begin that a phase asks for.
fn heap_steps(heap: usize, phase: usize) -> impl Iterator<Item = usize> {
    (phase * HEAP_STEPS..(phase + 1) * HEAP_STEPS).map(move |step| heap + step * HEAP_STEP)
}
