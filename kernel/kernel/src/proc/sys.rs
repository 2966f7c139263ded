//! `/proc/sys`, and the processors in `/sys`.

use crate::errno::Errno;
use crate::fs::live::{self, Entry, Table};
use crate::fs::{Inode, Live, Name};
use crate::program::{mixed, random_word};
use crate::system::system;
use crate::version::{NODE, RELEASE, VERSION};
use alloc::format;
use alloc::sync::Arc;
use core::fmt::{Display, Write};
use machine::Topology;
use metal::Metal;
use vm::Overcommit;

/// A file with one line.
fn line<T: Display>(value: impl Fn() -> T + Send + Sync + 'static) -> Result<Arc<Inode>, Errno> {
    live::text(move |to| Ok(writeln!(to, "{}", value())?))
}

/// `/proc/sys`, in `proc`. Its files can be read.
pub fn settings(proc: &Arc<Inode>) -> Result<Arc<Inode>, Errno> {
    live::table(
        proc,
        "sys",
        &[
            ("kernel", |sys, _| live::table(sys, "kernel", KERNEL)),
            ("vm", |sys, _| live::table(sys, "vm", MEMORY)),
        ],
    )
}

const KERNEL: &[Entry<()>] = &[
    ("ostype", |_, _| line(|| "Linux")),
    ("osrelease", |_, _| line(|| RELEASE)),
    ("version", |_, _| line(|| VERSION)),
    ("hostname", |_, _| line(|| NODE)),
    // One above the highest number; lower than `i32::MAX`, because programs add to it.
    ("pid_max", |_, _| line(|| i32::MAX / 2)),
    // Addresses are the same in each run.
    ("randomize_va_space", |_, _| line(|| 0)),
    ("random", |kernel, _| live::table(kernel, "random", RANDOM)),
];

const RANDOM: &[Entry<()>] = &[
    // The kernel has started once since then.
    ("boot_id", |_, _| {
        let start = metal::start_of_time();
        line(move || uuid([mixed(start), mixed(!start)]))
    }),
    ("uuid", |_, _| line(|| uuid([random_word(), random_word()]))),
];

/// The text of a random UUID (version 4) of these bits.
fn uuid([high, low]: [u64; 2]) -> impl Display {
    let high = high & !0xf000 | 0x4000;
    let low = low & !(0b11 << 62) | 0b10 << 62;
    let (first, second, third) = (high >> 32, high >> 16 & 0xffff, high & 0xffff);
    let (fourth, fifth) = (low >> 48, low & 0xffff_ffff_ffff);
    core::fmt::from_fn(move |to| {
        write!(
            to,
            "{first:08x}-{second:04x}-{third:04x}-{fourth:04x}-{fifth:012x}"
        )
    })
}

const MEMORY: &[Entry<()>] = &[
    ("overcommit_memory", |_, _| line(overcommit)),
    // There is no limit.
    ("max_map_count", |_, _| line(|| i32::MAX)),
];

fn overcommit() -> u32 {
    match system().vm.overcommit() {
        Overcommit::Heuristic => 0,
        Overcommit::Always => 1,
        Overcommit::Never => 2,
    }
}

/// `/sys`, in `root`.
pub fn tree(root: &Arc<Inode>) -> Result<Arc<Inode>, Errno> {
    live::table(root, "sys", &[("devices", |sys, _| devices(sys))])
}

fn devices(sys: &Arc<Inode>) -> Result<Arc<Inode>, Errno> {
    live::table(
        sys,
        "devices",
        &[("system", |devices, _| {
            live::table(devices, "system", SYSTEM)
        })],
    )
}

const SYSTEM: &[Entry<()>] = &[("cpu", |system, _| {
    Ok(live::directory(Processors(Table {
        parent: system.clone(),
        name: b"cpu".to_vec(),
        of: (),
        entries: PROCESSORS,
    })))
})];

const PROCESSORS: &[Entry<()>] = &[
    ("online", |_, _| line(all)),
    ("possible", |_, _| line(all)),
    ("present", |_, _| line(all)),
];

/// The processors: the lists of them, then a directory for each.
struct Processors(Table<()>);

impl Live for Processors {
    fn parent(&self) -> Option<Arc<Inode>> {
        self.0.parent()
    }

    fn name(&self) -> Name {
        self.0.name()
    }

    fn get(&self, own: &Arc<Inode>, name: &[u8]) -> Result<Arc<Inode>, Errno> {
        let number = name.strip_prefix(b"cpu").ok_or(Errno::NOENT);
        match number.and_then(live::number::<usize>) {
            Ok(number) if number < Metal.cpus().len() => {
                let name = str::from_utf8(name).map_err(|_| Errno::NOENT)?;
                live::table(own, name, &[])
            }
            _ => self.0.get(own, name),
        }
    }

    fn next(&self, from: u64) -> Option<(u64, Name)> {
        self.0.next(from).or_else(|| {
            let number = usize::try_from(from).ok()?.checked_sub(PROCESSORS.len())?;
            let name = format!("cpu{number}").into_bytes();
            (number < Metal.cpus().len()).then_some((from, name))
        })
    }
}

/// The CPUs, from the first to the last.
fn all() -> impl Display {
    core::fmt::from_fn(|to| match Metal.cpus().len() {
        1 => write!(to, "0"),
        cpus => write!(to, "0-{}", cpus - 1),
    })
}
