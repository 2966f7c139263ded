//! Programs: from an ELF file to a space that is ready to run it.

use crate::abi::Errno;
use crate::system::{ObjectRef, Request, Space};
use alloc::vec;
use alloc::vec::Vec;
use elf::abi::{EM_X86_64, ET_DYN, ET_EXEC, PF_R, PF_W, PF_X, PT_INTERP, PT_LOAD};
use elf::endian::LittleEndian;
use elf::file::{FileHeader, parse_ident};
use elf::parse::ParseAt;
use elf::segment::ProgramHeader;
use linux_raw_sys::auxvec::*;
use machine::{Clock, PAGE_SIZE};
use metal::Metal;
use vm::{At, Flags, HEAP_START, HIGHEST, Prot};

/// Where programs lie that may lie anywhere: beyond those that say where, which reach up to 2 GiB.
const ANYWHERE: usize = 0x8000_0000;
/// How much of a stack is mapped at first.
const STACK: usize = 128 << 10;
/// Where the stack ends: below the heap, so that a small process has few tables, which a fork copies.
const STACK_END: usize = HEAP_START - PAGE_SIZE;
/// The most program headers.
const HEADERS: usize = 64;
/// The bytes of an ELF header, and those of it that say how to read the others.
const HEADER: usize = 64;
const IDENT: usize = 16;

/// A program's path, arguments and environment.
#[derive(Clone)]
pub struct Start {
    /// Its arguments.
    pub arguments: Vec<Vec<u8>>,
    /// Its environment.
    pub environment: Vec<Vec<u8>>,
    /// The path by which it was found.
    pub path: Vec<u8>,
}

/// A program's headers.
pub struct Program {
    file: FileHeader<LittleEndian>,
    headers: Vec<ProgramHeader>,
    bias: usize,
}

/// Where a thread begins.
pub struct Begin {
    /// The first instruction.
    pub instruction: usize,
    /// The stack pointer.
    pub stack: usize,
}

impl Program {
    /// Reads the headers of a program that this kernel can run.
    pub fn read(object: &ObjectRef) -> Result<Self, Errno> {
        let mut header = [0; HEADER];
        if object.read(0, &mut header)? < HEADER {
            return Err(Errno::NOEXEC);
        }
        let (ident, tail) = header.split_at(IDENT);
        let not = |_| Errno::NOEXEC;
        let ident = parse_ident::<LittleEndian>(ident).map_err(not)?;
        let file = FileHeader::parse_tail(ident, tail).map_err(not)?;
        let count = usize::from(file.e_phnum);
        let fits = matches!(file.e_type, ET_EXEC | ET_DYN) && file.e_machine == EM_X86_64;
        if !fits || count > HEADERS {
            return Err(Errno::NOEXEC);
        }
        let mut bytes = vec![0; count * usize::from(file.e_phentsize)];
        if object.read(file.e_phoff, &mut bytes)? < bytes.len() {
            return Err(Errno::NOEXEC);
        }
        let mut at = 0;
        let parse = |_| ProgramHeader::parse_at(file.endianness, file.class, &mut at, &bytes);
        let headers: Result<Vec<_>, _> = (0..count).map(parse).collect();
        let headers = headers.map_err(not)?;
        // There is no dynamic linker.
        if headers.iter().any(|header| header.p_type == PT_INTERP) {
            return Err(Errno::NOEXEC);
        }
        let bias = if file.e_type == ET_DYN { ANYWHERE } else { 0 };
        Ok(Program {
            file,
            headers,
            bias,
        })
    }

    /// Maps the program and its stack in a space that is empty.
    pub fn load(&self, space: &Space, object: &ObjectRef, start: &Start) -> Result<Begin, Errno> {
        let loads = self.headers.iter().filter(|it| it.p_type == PT_LOAD);
        loads
            .into_iter()
            .try_for_each(|header| self.segment(space, object, header))?;
        let request = Request::anonymous(STACK, Prot::READ_WRITE).with(Flags::GROWS_DOWN);
        space.map_as(&request.at(At::Fixed(STACK_END - STACK)))?;
        Ok(Begin {
            instruction: self.entry(),
            stack: self.fill_stack(space, start)?,
        })
    }

    fn entry(&self) -> usize {
        self.bias.wrapping_add(self.file.e_entry as usize)
    }

    /// Maps a segment: the file's part of it, then zeroes.
    fn segment(
        &self,
        space: &Space,
        object: &ObjectRef,
        header: &ProgramHeader,
    ) -> Result<(), Errno> {
        let has = |flag| header.p_flags & flag != 0;
        let prot = Prot::new(has(PF_R), has(PF_W), has(PF_X));
        let address = self.bias.wrapping_add(header.p_vaddr as usize);
        let within = address % PAGE_SIZE;
        let end_of = |bytes: u64| {
            let end = address.checked_add(bytes as usize);
            end.filter(|&end| end <= HIGHEST).ok_or(Errno::NOEXEC)
        };
        let (file_end, end) = (end_of(header.p_filesz)?, end_of(header.p_memsz)?);
        if header.p_offset as usize % PAGE_SIZE != within || end < file_end {
            return Err(Errno::NOEXEC);
        }
        let first = address - within;
        let file_pages = (file_end - first).next_multiple_of(PAGE_SIZE);
        if header.p_filesz > 0 {
            let offset = header.p_offset - within as u64;
            let request = Request::object(object, offset, file_pages, prot)?;
            space.map_as(&request.at(At::Fixed(first)))?;
        }
        let mapped = if header.p_filesz > 0 {
            first + file_pages
        } else {
            first
        };
        let zeroes = end.next_multiple_of(PAGE_SIZE).saturating_sub(mapped);
        if zeroes > 0 {
            space.map_as(&Request::anonymous(zeroes, prot).at(At::Fixed(mapped)))?;
        }
        if end > file_end && file_end < mapped {
            space.copy_out(file_end, &vec![0; mapped - file_end])?;
        }
        Ok(())
    }

    /// Writes arguments, environment and the C library's auxiliary values; returns where they
    /// begin.
    fn fill_stack(&self, space: &Space, start: &Start) -> Result<usize, Errno> {
        let mut texts = Vec::new();
        let mut keep = |text: &[u8]| {
            let at = texts.len();
            texts.extend_from_slice(text);
            texts.push(0);
            at
        };
        let arguments: Vec<_> = start.arguments.iter().map(|text| keep(text)).collect();
        let environment: Vec<_> = start.environment.iter().map(|text| keep(text)).collect();
        let path = keep(&start.path);
        let random = texts.len();
        texts.extend_from_slice(
            &[random_word(), random_word()]
                .map(u64::to_le_bytes)
                .concat(),
        );
        let base = (STACK_END - texts.len()) & !15;

        let headers = self
            .headers
            .iter()
            .find(|it| it.p_offset == 0 && it.p_type == PT_LOAD);
        let headers = headers.map_or(0, |it| {
            self.bias
                .wrapping_add(it.p_vaddr.wrapping_add(self.file.e_phoff) as usize)
        });
        let auxiliary = [
            (AT_PHDR, headers),
            (AT_PHENT, usize::from(self.file.e_phentsize)),
            (AT_PHNUM, self.headers.len()),
            (AT_PAGESZ, PAGE_SIZE),
            (AT_ENTRY, self.entry()),
            (AT_UID, 0),
            (AT_EUID, 0),
            (AT_GID, 0),
            (AT_EGID, 0),
            (AT_SECURE, 0),
            (AT_CLKTCK, 100),
            (AT_HWCAP, metal::hardware_capabilities()),
            (AT_RANDOM, base + random),
            (AT_EXECFN, base + path),
            (AT_NULL, 0),
        ];
        let mut words = vec![arguments.len()];
        words.extend(arguments.iter().map(|at| base + at));
        words.push(0);
        words.extend(environment.iter().map(|at| base + at));
        words.push(0);
        words.extend(
            auxiliary
                .iter()
                .flat_map(|&(key, value)| [key as usize, value]),
        );
        let stack = (base - words.len() * 8) & !15;
        if stack < STACK_END - STACK {
            return Err(Errno::TOOBIG);
        }
        space.copy_out(base, &texts)?;
        let words: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        space.copy_out(stack, &words)?;
        Ok(stack)
    }
}

/// A number that programs cannot easily guess: of the time, mixed.
pub fn random_word() -> u64 {
    let mut word = Metal::now().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
