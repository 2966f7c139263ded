//! `/proc/PID`.

use super::{alive, task};
use crate::abi::Errno;
use crate::fs::made::{self, Report};
use crate::fs::names::{Names, path_of};
use crate::fs::{Inode, Kind, Name, OpenFile};
use crate::process::Process;
use crate::system::Space;
use alloc::format;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt;
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
                ("status", text(of, |of| task::status(of, of.pid))),
                ("stat", text(of, |of| task::stat(of, of.pid))),
                ("statm", text(of, statm)),
                ("comm", text(of, |of| Ok(task::comm(of, of.pid)))),
                ("task", task::tree(&itself, of)),
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
    Ok(match task::state(process, process.pid) {
        'Z' => Vec::new(),
        _ => process.arguments.lock().to_vec(),
    })
}

fn directory(process: &Process) -> Result<Name, Errno> {
    let directory = process.directory.lock().clone();
    path_of(&directory).ok_or(Errno::NOENT)
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
pub(super) fn footprint(process: &Process) -> (Stats, Vec<Region>) {
    let space = process.space();
    space.map_or_else(|_| Default::default(), |it| (it.stats(), it.regions()))
}

/// Bytes of those of `regions` that are `such`.
pub(super) fn bytes(regions: &[Region], such: impl Fn(&Region) -> bool) -> usize {
    let such = regions.iter().filter(|region| such(region));
    such.map(|region| region.range.len()).sum()
}

pub(super) fn is_stack(region: &Region) -> bool {
    region.flags.has(Flags::GROWS_DOWN)
}

pub(super) fn is_code(region: &Region) -> bool {
    region.prot().executes()
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
