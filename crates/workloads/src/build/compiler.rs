//! A compiler, from its first instruction to its exit.
//!
//! # Sizes
//! Measured on `gcc -O2 -c` (12.2, Debian 12) of 758 lines with 8 headers of the C library, with
//! `strace -f` and the tracepoint of page faults: the driver, cc1 and as together take 15,900
//! faults, 122 mmap, 513 brk, 20 mprotect, 5 munmap. Of cc1's 14,500 faults 9,700 are first writes
//! to mappings, 2,400 to the heap and zeroed data, 1,200 reads of its program, 820 writes to
//! program data that had been read; cc1's file has 33 MB. This workload has a twentieth of the
//! faults in the same proportions, and everything that a program maps before `main`: 9 files, each
//! in two parts. It frees memory more often than gcc does, like compilers with other allocators.
//! Computing takes 8 ms, where a twentieth would be 85, so that a job lasts some milliseconds and
//! spends a tenth of them in the VM when nothing delays it. (In case study 002 the system takes 7.7
//! % of the CPU time before its change, 4.3 % after.)

use super::OUTPUT;
use crate::program::{Files, Image, Input, Sizes, expect_input};
use crate::steps::{expect_bytes, fill, with_mapping};
use crate::unit::Unit;
use crate::{Backing, Error, Prot, System};

/// Nanoseconds of computing for a unit.
const COMPUTING: u64 = 8_000_000;
/// Parts in which a unit is compiled.
const PHASES: usize = 8;
/// Pages of the program that run in each phase.
const TEXT_PAGES: usize = 6;
/// The program's sizes.
const SIZES: Sizes = Sizes {
    data: 1 << 20,
    data_pages: 24,
    stack: 128 << 10,
    stack_pages: 4,
};
/// How often a phase grows the heap, by how many bytes, and how many of those pages it writes.
const HEAP_STEPS: usize = 2;
const HEAP_STEP: usize = 32 << 10;
const HEAP_PAGES: usize = 5;
/// Bytes of an arena, one for each phase; pages of it that are written, by up to a half more or
/// fewer; and the number of phases after which it is freed.
const ARENA: usize = 320 << 10;
const ARENA_PAGES: u64 = 48;
const ARENA_LIFE: usize = 2;

/// The most bytes that are touched, those of files included.
pub(super) const MEMORY: usize = 8 << 20;

/// The work of a process that has become the compiler: compiles unit number `unit` to `output`.
///
/// Its exit removes its mappings.
///
/// # Errors
/// The first call that fails, or page with wrong content.
pub fn compile<S: System>(
    system: &mut S,
    unit: u64,
    inputs: &Files<S::File>,
    output: &S::File,
) -> Result<(), Error> {
    let image = Image::load(system, inputs, &SIZES)?;
    let mut compiler = Compiler {
        page: system.page_size(),
        unit: Unit::of(unit),
        system,
    };
    let heap = compiler.system.program_break()?;
    let mut arenas = [None; PHASES];
    for phase in 0..PHASES {
        let text = phase * TEXT_PAGES..(phase + 1) * TEXT_PAGES;
        image.run_text(compiler.system, text, PHASES * TEXT_PAGES)?;
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
    /// Their content.
    byte: u8,
}

impl<S: System> Compiler<'_, S> {
    fn read_sources(&mut self, sources: &S::File) -> Result<(), Error> {
        let len = Input::Sources.size();
        let start = self
            .system
            .map(len, Prot::Read, Backing::PrivateFile(sources))?;
        (0..len / self.page)
            .try_for_each(|page| expect_input(self.system, start, Input::Sources, page))?;
        self.system.unmap(start, len)
    }

    /// Moves the end of the heap, which begins at `heap`, as often as a phase does.
    fn grow_heap(&mut self, heap: usize, phase: usize) -> Result<(), Error> {
        for start in heap_steps(heap, phase) {
            self.system.set_program_break(start + HEAP_STEP)?;
            fill(self.system, start, HEAP_PAGES, phase as u8 + 1)?;
        }
        Ok(())
    }

    fn check_heap(&mut self, heap: usize, phase: usize) -> Result<(), Error> {
        heap_steps(heap, phase)
            .try_for_each(|start| expect_bytes(self.system, start, HEAP_PAGES, phase as u8 + 1))
    }

    fn fill_arena(&mut self, phase: usize) -> Result<Arena, Error> {
        let arena = Arena {
            start: self
                .system
                .map(ARENA, Prot::ReadWrite, Backing::Anonymous)?,
            pages: self.unit.vary(ARENA_PAGES, phase as u64) as usize,
            byte: self.unit.output(phase),
        };
        fill(self.system, arena.start, arena.pages, arena.byte)?;
        Ok(arena)
    }

    fn check_arena(&mut self, arena: &Arena) -> Result<(), Error> {
        expect_bytes(self.system, arena.start, arena.pages, arena.byte)
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
}

/// The starts of the parts of the heap that a phase asks for.
fn heap_steps(heap: usize, phase: usize) -> impl Iterator<Item = usize> {
    (phase * HEAP_STEPS..(phase + 1) * HEAP_STEPS).map(move |step| heap + step * HEAP_STEP)
}
