//! A program's memory before its first instruction.

use super::{Files, Input, LIBRARIES};
use crate::steps::{expect_byte, fill};
use crate::{Backing, Error, Prot, System};
use core::ops::Range;

/// Bytes of a library's data, pages of it that are relocated, and bytes that then become read-only.
const LIBRARY_DATA: usize = 64 << 10;
const RELOCATED_PAGES: usize = 4;
pub(crate) const RELOCATED: usize = 32 << 10;
/// Pages of a library that are read.
const LIBRARY_PAGES: usize = 4;

/// Neighbouring pages of its program that a process runs. Measured on gcc 12.2's cc1 with `-O2`,
/// 728 lines, by callgrind's addresses: 2,227 pages in 418 runs, 5.3 pages each; of 8 aligned pages
/// 5.1 run if one does.
const RUN: usize = 6;

/// The sizes of a program.
pub(crate) struct Sizes {
    /// Bytes of its data.
    pub data: usize,
    /// Pages of the data that are written.
    pub data_pages: usize,
    /// Bytes of its stack.
    pub stack: usize,
    /// Pages of the stack that are used.
    pub stack_pages: usize,
}

/// The addresses of the mappings made by `exec` and the dynamic linker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// The program, read-only.
    pub text: usize,
    /// Its data; the written pages hold [`WRITTEN`].
    pub data: usize,
    /// Its stack; the pages in use hold [`WRITTEN`].
    pub stack: usize,
    /// The libraries, read-only.
    pub libraries: [usize; LIBRARIES],
    /// Their data; the relocated, read-only part comes first.
    pub library_data: [usize; LIBRARIES],
}

/// The content of a page written at the start.
pub(crate) const WRITTEN: u8 = 1;

impl Image {
    /// Makes the mappings of `exec` and the dynamic linker, and relocates the image.
    pub fn load<S: System>(
        system: &mut S,
        files: &Files<S::File>,
        sizes: &Sizes,
    ) -> Result<Self, Error> {
        let program = Backing::PrivateFile(&files.program);
        let text = system.map(Input::Program.size(), Prot::Read, program)?;
        let data = system.map(sizes.data, Prot::ReadWrite, program)?;
        copy_pages(system, data, Input::Program, sizes.data_pages)?;
        let stack = system.map(sizes.stack, Prot::ReadWrite, Backing::Anonymous)?;
        fill(system, stack, sizes.stack_pages, WRITTEN)?;
        let mut image = Image {
            text,
            data,
            stack,
            libraries: [0; LIBRARIES],
            library_data: [0; LIBRARIES],
        };
        for (number, library) in files.libraries.iter().enumerate() {
            let (text, data) = load_library(system, Input::Library(number), library)?;
            image.libraries[number] = text;
            image.library_data[number] = data;
        }
        Ok(image)
    }

    /// Unmaps the image.
    pub fn unload<S: System>(&self, system: &mut S, sizes: &Sizes) -> Result<(), Error> {
        system.unmap(self.text, Input::Program.size())?;
        system.unmap(self.data, sizes.data)?;
        system.unmap(self.stack, sizes.stack)?;
        for (number, (text, data)) in self
            .libraries
            .into_iter()
            .zip(self.library_data)
            .enumerate()
        {
            system.unmap(text, Input::Library(number).size())?;
            system.unmap(data, LIBRARY_DATA)?;
        }
        Ok(())
    }

    /// Reads pages of the program, in evenly spaced runs out of `all`.
    pub fn run_text<S: System>(
        &self,
        system: &mut S,
        mut pages: Range<usize>,
        all: usize,
    ) -> Result<(), Error> {
        let apart = Input::Program.size() / system.page_size() / all;
        pages.try_for_each(|number| {
            let page = number / RUN * RUN * apart + number % RUN;
            expect_input(system, self.text, Input::Program, page)
        })
    }
}

/// Maps a library and relocates it; returns the addresses of its text and data.
fn load_library<S: System>(
    system: &mut S,
    library: Input,
    file: &S::File,
) -> Result<(usize, usize), Error> {
    let file = Backing::PrivateFile(file);
    let text = system.map(library.size(), Prot::Read, file)?;
    let data = system.map(LIBRARY_DATA, Prot::ReadWrite, file)?;
    copy_pages(system, data, library, RELOCATED_PAGES)?;
    system.protect(data, RELOCATED, Prot::Read)?;
    (0..LIBRARY_PAGES).try_for_each(|page| expect_input(system, text, library, page))?;
    Ok((text, data))
}

/// Writes to pages of a file that is mapped privately: they must have the file's content, and
/// become this process's own.
fn copy_pages<S: System>(
    system: &mut S,
    start: usize,
    file: Input,
    pages: usize,
) -> Result<(), Error> {
    for page in 0..pages {
        expect_input(system, start, file, page)?;
        system.write(start + page * system.page_size(), WRITTEN)?;
    }
    Ok(())
}

/// Reads a page of a file that is mapped at `start`.
pub(crate) fn expect_input<S: System>(
    system: &mut S,
    start: usize,
    file: Input,
    page: usize,
) -> Result<(), Error> {
    let address = start + page * system.page_size();
    expect_byte(system, address, file.byte(page))
}
