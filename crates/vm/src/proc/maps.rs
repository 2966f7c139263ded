//! `/proc/PID/maps`.

use super::Names;
use crate::flags::Flags;
use crate::space::Region;
use core::fmt::{self, Write};

/// The column at which names begin.
const COLUMN: usize = 73;

/// Writes a line for each of `regions`, as Linux does.
pub fn write_maps(regions: &[Region], names: &Names<'_>, out: &mut impl Write) -> fmt::Result {
    regions
        .iter()
        .try_for_each(|region| line(region, names, out))
}

/// Writes the line that says where a region is and what it maps.
pub(super) fn line(region: &Region, names: &Names<'_>, out: &mut impl Write) -> fmt::Result {
    let mut out = Columns { out, written: 0 };
    let (range, prot, file) = (region.range, region.prot(), names.of(region));
    let mark = |has, mark| if has { mark } else { '-' };
    let shared = region.flags.has(Flags::SHARED);
    write!(
        out,
        "{:08x}-{:08x} {}{}{}{} {:08x} {:02x}:{:02x} {} ",
        range.start,
        range.end,
        mark(prot.reads(), 'r'),
        mark(prot.writes(), 'w'),
        mark(prot.executes(), 'x'),
        if shared { 's' } else { 'p' },
        region.object.map_or(0, |object| object.offset),
        file.device.0,
        file.device.1,
        file.inode,
    )?;
    if !file.path.is_empty() {
        let gap = COLUMN.saturating_sub(out.written);
        write!(out, "{:gap$}", "")?;
        name(file.path, &mut out)?;
    }
    out.write_char('\n')
}

/// Writes a name in one line: a line feed becomes an octal number.
fn name(path: &str, out: &mut impl Write) -> fmt::Result {
    path.chars().try_for_each(|letter| match letter {
        '\n' => out.write_str("\\012"),
        letter => out.write_char(letter),
    })
}

/// A writer that counts the characters written.
struct Columns<'a, W> {
    out: &'a mut W,
    written: usize,
}

impl<W: Write> Write for Columns<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.written += text.len();
        self.out.write_str(text)
    }
}
