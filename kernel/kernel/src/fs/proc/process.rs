//! `/proc/PID`.

use super::alive;
use crate::abi::{Errno, NAME};
use crate::fs::made::{self, Report};
use crate::fs::names::{Names, path_of};
use crate::fs::{Inode, Kind, Name, OpenFile};
use crate::process::Process;
use crate::system::Space;
use alloc::format;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;
use machine::{PAGE_SIZE, VaRange};
use vm::{Flags, HIGHEST, LOWEST, Region, Stats};

/// The directory of a process, in the directory `proc`.
pub fn tree(proc: &Weak<Inode>, process: &Arc<Process>) -> Arc<Inode> {
    let process = Arc::downgrade(process);
    made::listed(proc.clone(), |itself| {
        let itself = itself.clone();
        move || {
            let of = &process;
            Ok(made::entries([
                ("maps", text(of, maps)),
                ("smaps", text(of, smaps)),
                ("status", text(of, status)),
                ("stat", text(of, stat)),
                ("statm", text(of, statm)),
                ("comm", text(of, |of| Ok(format!("{}\n", name(of))))),
                ("cmdline", text(of, cmdline)),
                ("mounts", text(of, |_| Ok(String::from(MOUNTS)))),
                ("fd", descriptors(&itself, of)),
                ("pagemap", pagemap(of)),
                ("exe", link(of, |of| Ok(of.program.lock().to_vec()))),
                ("cwd", link(of, directory)),
                ("root", link(of, |_| Ok(b"/".to_vec()))),
            ]))
        }
    })
}

/// The mounts.
const MOUNTS: &str = "rootfs / rootfs rw 0 0\nproc /proc proc ro 0 0\nsysfs /sys sysfs ro 0 0\n";

fn text<T>(of: &Weak<Process>, write: fn(&Process) -> Result<T, Errno>) -> Arc<Inode>
where
    T: Into<Vec<u8>> + 'static,
{
    let of = of.clone();
    made::text(move || write(&*alive(&of)?))
}

fn link(of: &Weak<Process>, target: fn(&Process) -> Result<Name, Errno>) -> Arc<Inode> {
    let of = of.clone();
    made::link(move || target(&*alive(&of)?))
}

/// Its open files, by number, in their directory.
fn descriptors(directory: &Weak<Inode>, of: &Weak<Process>) -> Arc<Inode> {
    let of = of.clone();
    made::listed(directory.clone(), |_| {
        move || {
            let process = alive(&of)?;
            let files = process.files.lock();
            let entry = |(number, file): (usize, &Arc<OpenFile>)| {
                let inode = Inode::new(Kind::Opened(file.clone()), 0o700);
                (format!("{number}").into_bytes(), inode)
            };
            Ok(files.numbered().map(entry).collect())
        }
    })
}

/// Its arguments; nothing once it has ended.
fn cmdline(process: &Process) -> Result<Vec<u8>, Errno> {
    Ok(match state(process) {
        'Z' => Vec::new(),
        _ => process.arguments.lock().to_vec(),
    })
}

fn directory(process: &Process) -> Result<Name, Errno> {
    let directory = process.directory.lock().clone();
    path_of(&directory).ok_or(Errno::NOENT)
}

/// The name of the process's first thread; nothing if that has ended.
fn name(process: &Process) -> String {
    let threads = process.threads.lock();
    let first = threads.iter().find(|thread| thread.tid() == process.pid);
    let name = first.map_or([0; NAME], |thread| *thread.name.lock());
    let end = name.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&name[..end.unwrap_or(NAME)]).into_owned()
}

fn maps(process: &Process) -> Result<String, Errno> {
    written(process, |space, names, text| {
        Ok(vm::proc::write_maps(&space.regions(), names, text))
    })
}

fn smaps(process: &Process) -> Result<String, Errno> {
    written(process, |space, names, text| {
        Ok(vm::proc::write_smaps(&space.footprints()?, names, text))
    })
}

/// The text that `write` writes of the process's space; nothing once it has ended.
fn written(
    process: &Process,
    write: impl FnOnce(&Space, &vm::proc::Names, &mut String) -> Result<fmt::Result, Errno>,
) -> Result<String, Errno> {
    let mut text = String::new();
    let Ok(space) = process.space() else {
        return Ok(text);
    };
    let files = Names::now();
    let names = vm::proc::Names {
        heap: space.heap(),
        file: &|object| files.of(object),
    };
    write(&space, &names, &mut text)?.map_err(|_| Errno::NOMEM)?;
    Ok(text)
}

/// The process's mappings; nothing once it has ended.
fn footprint(process: &Process) -> (Stats, Vec<Region>) {
    let space = process.space();
    space.map_or_else(|_| Default::default(), |it| (it.stats(), it.regions()))
}

/// Bytes of those of `regions` that are `such`.
fn bytes(regions: &[Region], such: impl Fn(&Region) -> bool) -> usize {
    let such = regions.iter().filter(|region| such(region));
    such.map(|region| region.range.len()).sum()
}

fn is_stack(region: &Region) -> bool {
    region.flags.has(Flags::GROWS_DOWN)
}

fn is_code(region: &Region) -> bool {
    region.prot().executes()
}

/// The letter of the process's state: it has ended, is stopped, or does what its first thread does.
fn state(process: &Process) -> char {
    // Acquire: pairs with the release in `Thread::finish`.
    if process.has_finished.load(Ordering::Acquire) {
        'Z'
    } else if process.job.is_stopped() {
        'T'
    } else if process.is_asleep() {
        'S'
    } else {
        'R'
    }
}

/// Of Linux's lines those that mean something here. All users are root.
fn status(process: &Process) -> Result<String, Errno> {
    let (stats, regions) = footprint(process);
    let mut text = String::new();
    let pid = process.pid;
    let state = match state(process) {
        'Z' => "Z (zombie)",
        'T' => "T (stopped)",
        'S' => "S (sleeping)",
        _ => "R (running)",
    };
    let lines = [
        ("Name", name(process)),
        (
            "Umask",
            format!("{:04o}", process.umask.load(Ordering::Relaxed)),
        ),
        ("State", String::from(state)),
        ("Tgid", format!("{pid}")),
        ("Pid", format!("{pid}")),
        ("PPid", format!("{}", process.family.parent_number())),
        ("Uid", String::from("0\t0\t0\t0")),
        ("Gid", String::from("0\t0\t0\t0")),
    ];
    let mut written = lines
        .iter()
        .try_for_each(|(name, value)| writeln!(text, "{name}:\t{value}"));
    let pages = |count: u64| count as usize * PAGE_SIZE;
    for (name, bytes) in [
        ("VmSize", pages(stats.usage.mapped)),
        ("VmLck", pages(stats.usage.locked)),
        ("VmRSS", pages(stats.resident())),
        ("RssAnon", pages(stats.private)),
        ("RssFile", pages(stats.file)),
        ("RssShmem", pages(stats.shared)),
        ("VmData", pages(stats.usage.data)),
        ("VmStk", bytes(&regions, is_stack)),
        ("VmExe", bytes(&regions, is_code)),
        ("VmSwap", pages(stats.swapped)),
    ] {
        written = written.and(writeln!(text, "{name}:\t{:>8} kB", bytes >> 10));
    }
    let threads = process.threads.lock().len();
    written
        .and(writeln!(text, "Threads:\t{threads}"))
        .map_err(|_| Errno::NOMEM)?;
    Ok(text)
}

/// Linux's 52 numbers; those that are not counted are 0.
fn stat(process: &Process) -> Result<String, Errno> {
    /// Where some of them stand, from 1.
    const GROUP: usize = 5;
    const SESSION: usize = 6;
    const THREADS: usize = 20;
    const SIZE: usize = 23;
    const RESIDENT: usize = 24;
    const COUNT: usize = 52;
    let (stats, _) = footprint(process);
    let mut text = format!(
        "{} ({}) {} {}",
        process.pid,
        name(process),
        state(process),
        process.family.parent_number()
    );
    for place in 5..=COUNT {
        let number = match place {
            GROUP => process.job.group().into(),
            SESSION => process.job.session().into(),
            THREADS => process.threads.lock().len() as u64,
            SIZE => stats.usage.mapped * PAGE_SIZE as u64,
            RESIDENT => stats.resident(),
            _ => 0,
        };
        write!(text, " {number}").map_err(|_| Errno::NOMEM)?;
    }
    text.push('\n');
    Ok(text)
}

/// Pages: mapped, in memory, in memory of objects, of code, 0, private and writable with stacks, 0.
fn statm(process: &Process) -> Result<String, Errno> {
    let (stats, regions) = footprint(process);
    let Stats { usage, .. } = stats;
    let stack = bytes(&regions, is_stack) / PAGE_SIZE;
    Ok(format!(
        "{} {} {} {} 0 {} 0\n",
        usage.mapped,
        stats.resident(),
        stats.file + stats.shared,
        bytes(&regions, is_code) / PAGE_SIZE,
        usage.data as usize + stack,
    ))
}

/// Where each page of the process is.
struct PageMap(Arc<Process>);

fn pagemap(of: &Weak<Process>) -> Arc<Inode> {
    let of = of.clone();
    made::report(move || Ok(PageMap(alive(&of)?)))
}

impl Report for PageMap {
    /// Whole words only, as on Linux.
    fn read_at(&self, offset: u64, to: &mut [u8]) -> Result<usize, Errno> {
        const WORD: usize = 8;
        if !offset.is_multiple_of(WORD as u64) || !to.len().is_multiple_of(WORD) {
            return Err(Errno::INVAL);
        }
        let end = HIGHEST / PAGE_SIZE;
        let first = usize::try_from(offset / WORD as u64).map_or(end, |first| first.min(end));
        let count = (to.len() / WORD).min(end - first);
        let (words, _) = to.as_chunks_mut::<WORD>();
        let words = &mut words[..count];
        words.fill([0; WORD]);
        // There are no mappings below.
        let from = first.max(LOWEST / PAGE_SIZE);
        if from < first + count {
            let range = VaRange {
                start: from * PAGE_SIZE,
                end: (first + count) * PAGE_SIZE,
            };
            let places = self.0.space()?.page_places(range)?;
            for (word, place) in words[from - first..].iter_mut().zip(places) {
                *word = vm::proc::pagemap_entry(place).to_le_bytes();
            }
        }
        Ok(count * WORD)
    }
}
