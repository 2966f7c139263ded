//! Programs: from an ELF file to a space that is ready to run it.

use crate::errno::Errno;
use crate::heap;
use crate::system::{ObjectRef, Request, Space};
use crate::users::Users;
use alloc::vec;
use alloc::vec::Vec;
use core::iter;
use elf::abi::{EM_X86_64, ET_DYN, ET_EXEC, PF_R, PF_W, PF_X, PT_INTERP, PT_LOAD};
use elf::endian::LittleEndian;
use elf::file::{FileHeader, parse_ident};
use elf::parse::ParseAt;
use elf::segment::ProgramHeader;
use linux_raw_sys::auxvec::*;
use machine::{Clock, PAGE_SIZE};
use metal::Metal;
use vm::{At, Flags, HEAP_START, HIGHEST, Prot};

/// The address of position-independent programs: above those with fixed addresses, which extend up
/// to 2 GiB.
const ANYWHERE: usize = 0x8000_0000;
/// The address of interpreters: above programs, and below stacks.
const INTERPRETER: usize = 0xc000_0000;
/// The most bytes of an interpreter's path, with its end.
const PATH: usize = 4096;
/// The part of a stack that is mapped initially, below arguments and environment.
const STACK: usize = 128 << 10;
/// Where the stack ends: below the heap, so that a small process has few tables, which a fork
/// copies.
pub const STACK_END: usize = HEAP_START - PAGE_SIZE;
/// The most program headers.
const HEADERS: usize = 64;
/// The bytes of an ELF header.
const HEADER: usize = 64;
/// The bytes of it that say how to read the others.
const IDENT: usize = 16;

/// Texts, each with a 0 at its end: a program's arguments, or its environment.
#[derive(Default)]
pub struct Texts {
    /// The bytes of the texts.
    pub bytes: Vec<u8>,
    /// The number of texts.
    pub count: usize,
}

impl Texts {
    /// Adds a text, which has no 0; [`Errno::NOMEM`] if there is no room.
    pub fn push(&mut self, text: &[u8]) -> Result<(), Errno> {
        let bytes = &mut self.bytes;
        bytes
            .try_reserve(text.len() + 1)
            .map_err(|_| Errno::NOMEM)?;
        bytes.extend_from_slice(text);
        bytes.push(0);
        self.count += 1;
        Ok(())
    }

    /// The texts.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split(|&byte| byte == 0).take(self.count)
    }
}

/// A program's path, arguments and environment.
#[derive(Default)]
pub struct Start {
    /// Its arguments.
    pub arguments: Texts,
    /// Its environment.
    pub environment: Texts,
    /// The path by which it was found.
    pub path: Vec<u8>,
}

/// An ELF file that can be mapped.
struct Image {
    object: ObjectRef,
    file: FileHeader<LittleEndian>,
    headers: Vec<ProgramHeader>,
    bias: usize,
}

/// A program, and the interpreter that it names, which links and starts it.
pub struct Program {
    image: Image,
    interpreter: Option<Image>,
}

/// Where a thread begins.
pub struct Begin {
    /// The first instruction.
    pub instruction: usize,
    /// The stack pointer.
    pub stack: usize,
}

impl Image {
    /// Reads the headers of a file; it is mapped at `place` if it can be anywhere.
    fn read(object: &ObjectRef, place: usize) -> Result<Self, Errno> {
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
        let mut bytes = heap::buffer(count * usize::from(file.e_phentsize))?;
        if object.read(file.e_phoff, &mut bytes)? < bytes.len() {
            return Err(Errno::NOEXEC);
        }
        let mut at = 0;
        let parse = |_| ProgramHeader::parse_at(file.endianness, file.class, &mut at, &bytes);
        let headers: Result<Vec<_>, _> = (0..count).map(parse).collect();
        Ok(Image {
            object: object.clone(),
            headers: headers.map_err(not)?,
            bias: if file.e_type == ET_DYN { place } else { 0 },
            file,
        })
    }

    /// The path of the interpreter that the file names.
    fn interpreter(&self) -> Result<Option<Vec<u8>>, Errno> {
        let Some(header) = self.headers.iter().find(|it| it.p_type == PT_INTERP) else {
            return Ok(None);
        };
        let bytes = usize::try_from(header.p_filesz).unwrap_or(usize::MAX);
        if !(2..=PATH).contains(&bytes) {
            return Err(Errno::NOEXEC);
        }
        let mut path = heap::buffer(bytes)?;
        if self.object.read(header.p_offset, &mut path)? < bytes {
            return Err(Errno::IO);
        }
        match path.pop() {
            Some(0) => Ok(Some(path)),
            _ => Err(Errno::NOEXEC),
        }
    }

    /// Maps the file in a space.
    fn load(&self, space: &Space) -> Result<(), Errno> {
        let mut loads = self.headers.iter().filter(|it| it.p_type == PT_LOAD);
        loads.try_for_each(|header| self.segment(space, header))
    }

    fn entry(&self) -> usize {
        self.bias.wrapping_add(self.file.e_entry as usize)
    }

    /// Maps a segment: the file's part of it, then zeroes.
    fn segment(&self, space: &Space, header: &ProgramHeader) -> Result<(), Errno> {
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
            let request = Request::object(&self.object, offset, file_pages, prot)?;
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

    /// The address at which the program headers are mapped; 0 if they are not.
    fn headers_at(&self) -> usize {
        let first = |it: &&ProgramHeader| it.p_offset == 0 && it.p_type == PT_LOAD;
        let headers = self.headers.iter().find(first);
        headers.map_or(0, |it| {
            let address = it.p_vaddr.wrapping_add(self.file.e_phoff);
            self.bias.wrapping_add(address as usize)
        })
    }
}

impl Program {
    /// Reads the headers of a program that this kernel can run, and of its interpreter, for whose
    /// path `find` returns the file.
    pub fn read(
        object: &ObjectRef,
        find: impl FnOnce(&[u8]) -> Result<ObjectRef, Errno>,
    ) -> Result<Self, Errno> {
        let image = Image::read(object, ANYWHERE)?;
        let path = image.interpreter()?;
        let interpreter = path.map(|path| {
            let read = Image::read(&find(&path)?, INTERPRETER);
            read.map_err(|errno| match errno {
                Errno::NOEXEC => Errno::LIBBAD,
                errno => errno,
            })
        });
        Ok(Program {
            image,
            interpreter: interpreter.transpose()?,
        })
    }

    /// Maps the program, its interpreter and its stack in a space that is empty.
    /// The auxiliary values tell who runs it, and if that has rights which the user does not have.
    pub fn load(
        &self,
        space: &Space,
        start: &Start,
        users: &Users,
        is_privileged: bool,
    ) -> Result<Begin, Errno> {
        self.image.load(space)?;
        if let Some(interpreter) = &self.interpreter {
            interpreter.load(space)?;
        }
        let stack = self.stack_of(start);
        let bytes = (STACK_END - stack + STACK).next_multiple_of(PAGE_SIZE);
        let request = Request::anonymous(bytes, Prot::READ_WRITE).with(Flags::GROWS_DOWN);
        space.map_as(&request.at(At::Fixed(STACK_END - bytes)))?;
        let Users { user, group, .. } = users;
        let is_privileged = u32::from(is_privileged);
        let who = [
            user.real,
            user.effective,
            group.real,
            group.effective,
            is_privileged,
        ];
        self.fill_stack(space, start, stack, who)?;
        Ok(Begin {
            instruction: self.interpreter.as_ref().unwrap_or(&self.image).entry(),
            stack,
        })
    }

    /// The address of the texts on a program's first stack. Above them are only bytes for
    /// alignment.
    fn texts_of(start: &Start) -> usize {
        let texts = start.arguments.bytes.len() + start.environment.bytes.len();
        (STACK_END - texts - (start.path.len() + 1) - RANDOM) & !15
    }

    /// The address of the words on a program's first stack, below its texts.
    fn stack_of(&self, start: &Start) -> usize {
        let texts = start.arguments.count + start.environment.count;
        // The number of arguments, an end of each list, and the auxiliary values.
        let words = 1 + texts + 2 + 2 * AUXILIARY;
        (Self::texts_of(start) - words * size_of::<usize>()) & !15
    }

    /// Writes arguments, environment and the C library's auxiliary values, the words from `stack`
    /// on.
    fn fill_stack(
        &self,
        space: &Space,
        start: &Start,
        stack: usize,
        who: [u32; 5],
    ) -> Result<(), Errno> {
        let Start {
            arguments,
            environment,
            path,
        } = start;
        let mut at = Self::texts_of(start);
        let mut keep = |bytes: &[u8]| -> Result<usize, Errno> {
            space.copy_out(at, bytes)?;
            at += bytes.len();
            Ok(at - bytes.len())
        };
        let first_argument = keep(&arguments.bytes)?;
        let first_variable = keep(&environment.bytes)?;
        let path = keep(&[path, b"\0".as_slice()].concat())?;
        let random = [random_word(), random_word()].map(u64::to_le_bytes);
        let random = keep(random.as_flattened())?;
        let auxiliary = self.auxiliary(random, path, who);
        let auxiliary = auxiliary
            .iter()
            .flat_map(|&(key, value)| [key as usize, value]);
        let words = iter::once(arguments.count)
            .chain(addresses(arguments, first_argument))
            .chain([0])
            .chain(addresses(environment, first_variable))
            .chain([0])
            .chain(auxiliary);
        write_words(space, stack, words)
    }

    /// The auxiliary values, with the places of the random bytes and of the program's path.
    fn auxiliary(&self, random: usize, path: usize, who: [u32; 5]) -> [(u32, usize); AUXILIARY] {
        let [user, acting_user, group, acting_group, is_privileged] = who.map(|id| id as usize);
        let Image { file, headers, .. } = &self.image;
        [
            (AT_PHDR, self.image.headers_at()),
            (AT_PHENT, usize::from(file.e_phentsize)),
            (AT_PHNUM, headers.len()),
            (AT_PAGESZ, PAGE_SIZE),
            (AT_BASE, self.interpreter.as_ref().map_or(0, |it| it.bias)),
            (AT_ENTRY, self.image.entry()),
            (AT_UID, user),
            (AT_EUID, acting_user),
            (AT_GID, group),
            (AT_EGID, acting_group),
            (AT_SECURE, is_privileged),
            (AT_CLKTCK, 100),
            (AT_HWCAP, metal::hardware_capabilities()),
            (AT_RANDOM, random),
            (AT_EXECFN, path),
            (AT_NULL, 0),
        ]
    }
}

/// The number of auxiliary values.
const AUXILIARY: usize = 16;
/// The random bytes to which one of them points.
const RANDOM: usize = 16;

/// The addresses of texts that begin at `at`.
fn addresses(texts: &Texts, mut at: usize) -> impl Iterator<Item = usize> {
    texts.iter().map(move |text| {
        at += text.len() + 1;
        at - text.len() - 1
    })
}

/// Writes words from `at` on, a few at a time, since there may be very many.
fn write_words(
    space: &Space,
    mut at: usize,
    mut words: impl Iterator<Item = usize>,
) -> Result<(), Errno> {
    loop {
        let mut part = [[0; size_of::<usize>()]; 64];
        let filled = part.iter_mut().zip(&mut words);
        let count = filled
            .map(|(place, word)| *place = word.to_le_bytes())
            .count();
        if count == 0 {
            return Ok(());
        }
        let bytes = part[..count].as_flattened();
        space.copy_out(at, bytes)?;
        at += bytes.len();
    }
}

/// A number that programs cannot easily guess: of the time, mixed.
pub fn random_word() -> u64 {
    mixed(Metal::now())
}

/// A number that looks unlike `seed`, and like no other's.
pub fn mixed(seed: u64) -> u64 {
    let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
