//! `/proc/PID/smaps`.

use super::{Names, maps};
use crate::flags::Flags;
use crate::space::{Footprint, Region};
use core::fmt::{self, Write};
use machine::PAGE_SIZE;

const KIB: u64 = 1 << 10;

/// Writes the footprint of each region: those of Linux's fields that mean something here.
pub fn write_smaps(
    footprints: &[Footprint],
    names: &Names<'_>,
    out: &mut impl Write,
) -> fmt::Result {
    footprints
        .iter()
        .try_for_each(|footprint| entry(footprint, names, out))
}

fn entry(footprint: &Footprint, names: &Names<'_>, out: &mut impl Write) -> fmt::Result {
    let region = &footprint.region;
    maps::line(region, names, out)?;
    let pages = |count: u64| count * PAGE_SIZE as u64 / KIB;
    let proportional = footprint.proportional / Footprint::FRACTION / KIB;
    let is_locked = region.flags.has(Flags::LOCKED);
    for (field, kib) in [
        ("Size:", region.range.len() as u64 / KIB),
        ("KernelPageSize:", pages(1)),
        ("MMUPageSize:", pages(1)),
        ("Rss:", pages(footprint.resident)),
        ("Pss:", proportional),
        ("Shared_Clean:", pages(footprint.shared_clean)),
        ("Shared_Dirty:", pages(footprint.shared_dirty)),
        ("Private_Clean:", pages(footprint.private_clean)),
        ("Private_Dirty:", pages(footprint.private_dirty)),
        ("Referenced:", pages(footprint.referenced)),
        ("Anonymous:", pages(footprint.anonymous)),
        ("LazyFree:", pages(footprint.lazily_freed)),
        ("AnonHugePages:", pages(footprint.in_superpages)),
        ("Swap:", pages(footprint.swapped)),
        ("Locked:", if is_locked { proportional } else { 0 }),
    ] {
        writeln!(out, "{field:<16}{kib:>8} kB")?;
    }
    flags(region, out)
}

/// Writes the flags of a region, in Linux's two letters each and in their order.
fn flags(region: &Region, out: &mut impl Write) -> fmt::Result {
    let (prot, flags) = (region.prot(), region.flags);
    let shared = flags.has(Flags::SHARED);
    let read_only = shared && flags.has(Flags::READ_ONLY);
    out.write_str("VmFlags:")?;
    for (letters, is_set) in [
        ("rd", prot.reads()),
        ("wr", prot.writes()),
        ("ex", prot.executes()),
        ("sh", shared && !read_only),
        ("mr", true),
        ("mw", !read_only),
        ("me", true),
        ("ms", shared),
        ("gd", flags.has(Flags::GROWS_DOWN)),
        ("lo", flags.has(Flags::LOCKED)),
        ("sr", flags.has(Flags::SEQUENTIAL)),
        ("rr", flags.has(Flags::RANDOM)),
        ("dc", flags.has(Flags::DONT_FORK)),
        ("lf", flags.has(Flags::ON_FAULT)),
        ("ac", flags.has(Flags::CHARGED)),
        ("nr", flags.has(Flags::NO_RESERVE)),
        ("wf", flags.has(Flags::WIPE_ON_FORK)),
        ("dd", flags.has(Flags::DONT_DUMP)),
        ("hg", flags.has(Flags::HUGE)),
        ("nh", flags.has(Flags::NO_HUGE)),
    ] {
        if is_set {
            write!(out, " {letters}")?;
        }
    }
    out.write_str(" \n")
}
