//! The unwind table of a program or library (`.eh_frame`).

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, NativeEndian, Register, RegisterRule,
    UnwindContext, UnwindSection, UnwindTableRow,
};
use object::{Object, ObjectSection, ObjectSegment, ReadCache, ReadRef};
use std::fs::File;

/// Numbers of registers in unwind tables.
#[cfg(target_arch = "aarch64")]
mod register {
    pub const FRAME: u16 = 29;
    pub const STACK: u16 = 31;
    pub const RETURN: u16 = 30;
}
/// Numbers of registers in unwind tables.
#[cfg(not(target_arch = "aarch64"))]
mod register {
    pub const FRAME: u16 = 6;
    pub const STACK: u16 = 7;
    pub const RETURN: u16 = 16;
}

/// The register that a frame's address is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Stack,
    Frame,
}

/// How to get from a function's frame to its caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// Where the caller's stack pointer is: a register and an offset.
    pub base: Base,
    pub distance: i64,
    /// The return address's offset from the caller's stack pointer; none if it is in a register.
    pub return_at: Option<i64>,
    /// The offset of the caller's frame pointer, if the function has saved it.
    pub frame_at: Option<i64>,
}

/// A file's table.
#[derive(Debug)]
pub(super) struct Table {
    segments: Vec<Segment>,
    frames: Section,
    index: Option<Section>,
}

/// A part of the file, and its address in memory relative to the load address.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    length: u64,
    address: u64,
    /// The size in memory, which may exceed that in the file.
    size: u64,
    can_run: bool,
}

#[derive(Debug)]
struct Section {
    address: u64,
    data: Vec<u8>,
}

/// The unit of mappings.
const PAGE: u64 = 4096;

type Slice<'a> = EndianSlice<'a, NativeEndian>;

impl Table {
    /// The table of the file at `path`; `[vdso]` is the kernel's page, the same in each process.
    pub fn of(path: &str) -> Option<Table> {
        match path {
            "[vdso]" => Self::read(vdso()?),
            _ if path.starts_with('/') && !path.starts_with("//") => {
                Self::read(&ReadCache::new(File::open(path).ok()?))
            }
            _ => None,
        }
    }

    fn read<'a>(data: impl ReadRef<'a>) -> Option<Table> {
        let file = object::File::parse(data).ok()?;
        let section = |name| {
            let section = file.section_by_name(name)?;
            Some(Section {
                address: section.address(),
                data: section.data().ok()?.to_vec(),
            })
        };
        let segment = |segment: object::Segment<'a, '_, _>| {
            let (offset, length) = segment.file_range();
            Segment {
                offset,
                length,
                address: segment.address(),
                size: segment.size(),
                can_run: segment.permissions().executable(),
            }
        };
        Some(Table {
            segments: file.segments().map(segment).collect(),
            frames: section(".eh_frame")?,
            index: section(".eh_frame_hdr"),
        })
    }

    /// The address, relative to the load address, of executable bytes from `offset` of the file on:
    /// a mapping begins at the start of a page, if need be before its part of the file.
    pub fn mapped(&self, offset: u64) -> Option<u64> {
        let page = |offset: u64| offset / PAGE * PAGE;
        let holds = |segment: &&Segment| {
            segment.can_run
                && (page(segment.offset)..segment.offset + segment.length).contains(&offset)
        };
        let segment = self.segments.iter().find(holds)?;
        Some(
            segment
                .address
                .wrapping_add(offset)
                .wrapping_sub(segment.offset),
        )
    }

    /// Returns true if something of the file lies at `address`, relative to the load address.
    pub fn holds(&self, address: u64) -> bool {
        let segments = self.segments.iter();
        let mut ranges = segments.map(|segment| segment.address..segment.address + segment.size);
        ranges.any(|range| range.contains(&address))
    }

    /// The rule for the instruction at `offset` of the file.
    pub fn rule(&self, offset: u64) -> Option<Rule> {
        let holds = |segment: &&Segment| {
            (segment.offset..segment.offset + segment.length).contains(&offset)
        };
        let segment = self.segments.iter().find(holds)?;
        let address = segment.address + (offset - segment.offset);
        let frames = EhFrame::new(&self.frames.data, NativeEndian);
        let bases = BaseAddresses::default().set_eh_frame(self.frames.address);
        let mut context = UnwindContext::new();
        let row = match &self.index {
            Some(index) => {
                let bases = bases.set_eh_frame_hdr(index.address);
                let index = EhFrameHdr::new(&index.data, NativeEndian);
                let index = index.parse(&bases, 8).ok()?;
                let table = index.table()?;
                table
                    .unwind_info_for_address(
                        &frames,
                        &bases,
                        &mut context,
                        address,
                        EhFrame::cie_from_offset,
                    )
                    .ok()?
            }
            None => frames
                .unwind_info_for_address(&bases, &mut context, address, EhFrame::cie_from_offset)
                .ok()?,
        };
        rule(row)
    }
}

fn rule(row: &UnwindTableRow<<Slice<'_> as gimli::Reader>::Offset>) -> Option<Rule> {
    let &CfaRule::RegisterAndOffset { register, offset } = row.cfa() else {
        return None;
    };
    let base = match register {
        Register(register::STACK) => Base::Stack,
        Register(register::FRAME) => Base::Frame,
        _ => return None,
    };
    let saved = |register| match row.register(Register(register)) {
        Some(RegisterRule::Offset(at)) => Some(Some(at)),
        None | Some(RegisterRule::SameValue) => Some(None),
        // The outermost function returns nowhere.
        _ => None,
    };
    Some(Rule {
        base,
        distance: offset,
        return_at: saved(register::RETURN)?,
        frame_at: saved(register::FRAME).flatten(),
    })
}

/// The kernel's page as mapped in this process.
fn vdso() -> Option<&'static [u8]> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"))?;
    let (start, end) = line.split_once(' ')?.0.split_once('-')?;
    let [start, end] = [start, end].map(|hex| usize::from_str_radix(hex, 16).ok());
    let (start, end) = (start?, end?);
    // SAFETY: readable memory that does not change as long as the process lives.
    Some(unsafe { std::slice::from_raw_parts(start as *const u8, end - start) })
}
