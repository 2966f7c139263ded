//! `/proc/PID`.

use super::{alive, limits, task};
use crate::errno::Errno;
use crate::fs::live::{self, Entry, Report, Sheet, Table};
use crate::fs::{Inode, Jump, Live, Name, Names, ROOT};
use crate::process::Process;
use crate::program::{STACK_END, Start, Texts};
use crate::system::Space;
use alloc::string::ToString;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::sync::atomic::Ordering;
use machine::{PAGE_SIZE, VaRange};
use vm::{Flags, HIGHEST, LOWEST, Region, Stats};

/// The files of a process in `/proc`.
const ENTRIES: &[Entry<Weak<Process>>] = &[
    ("maps", |_, of| text(of, maps)),
    ("smaps", |_, of| text(of, smaps)),
    ("status", |_, of| {
        text(of, |of, to| task::status(of, of.pid, to))
    }),
    ("stat", |_, of| {
        text(of, |of, to| task::stat(of, of.pid, to))
    }),
    ("statm", |_, of| text(of, statm)),
    ("comm", |_, of| {
        text(of, |of, to| task::comm(of, of.pid, to))
    }),
    ("task", |itself, of| Ok(task::tree(itself, of))),
    ("cmdline", |_, of| {
        text(of, |of, to| given(of, |it| &it.arguments, to))
    }),
    ("environ", |_, of| {
        let environment = text(of, |of, to| given(of, |it| &it.environment, to))?;
        environment.mode.store(0o400, Ordering::Relaxed);
        Ok(environment)
    }),
    ("limits", |_, of| text(of, limits::table)),
    ("mounts", |_, of| text(of, |_, to| to.add(MOUNTS))),
    ("mountinfo", |_, of| text(of, |_, to| to.add(MOUNT_INFO))),
    ("fd", |itself, of| {
        let opened = live::directory(Opened::new(itself, of));
        opened.mode.store(0o500, Ordering::Relaxed);
        Ok(opened)
    }),
    ("pagemap", |_, of| {
        Ok(live::report(PageMap(alive(of)?), 0o400))
    }),
    ("exe", |_, of| {
        let program = alive(of)?.program.lock().clone();
        let inode = program.inode().ok_or(Errno::NOENT)?;
        Ok(Jump::inode(inode.clone(), Some(program.path().to_vec())))
    }),
    ("cwd", |_, of| {
        let directory = alive(of)?.directory.lock().clone();
        Ok(Jump::inode(directory, None))
    }),
    ("root", |_, _| Ok(Jump::inode(ROOT.clone(), None))),
];

/// The directory of a process, in the directory `proc`.
pub fn tree(proc: &Arc<Inode>, process: &Arc<Process>) -> Arc<Inode> {
    let tree = live::directory(Table {
        parent: proc.clone(),
        name: process.pid.to_string().into_bytes(),
        of: Arc::downgrade(process),
        entries: ENTRIES,
    });
    let users = process.users.lock().clone();
    // A process may always look at itself.
    let is_own = process.is_dumpable.load(Ordering::Relaxed) || super::caller() == Ok(process.pid);
    let [user, group] = [users.user, users.group].map(|ids| if is_own { ids.effective } else { 0 });
    tree.attributes.user.store(user, Ordering::Relaxed);
    tree.attributes.group.store(group, Ordering::Relaxed);
    tree
}

/// The mounts.
const MOUNTS: &[u8] = b"rootfs / rootfs rw 0 0\nproc /proc proc ro 0 0\nsysfs /sys sysfs ro 0 0\n";

/// The same with the numbers of mounts, of what is mounted on what, and of devices.
const MOUNT_INFO: &[u8] = b"1 1 0:1 / / rw - rootfs rootfs rw\n2 1 0:1 / /proc ro - proc proc ro\n\
    3 1 0:1 / /sys ro - sysfs sysfs ro\n";

/// A file with the text that `write` writes about a process.
fn text(
    of: &Weak<Process>,
    write: fn(&Process, &mut Sheet) -> Result<(), Errno>,
) -> Result<Arc<Inode>, Errno> {
    let of = of.clone();
    live::text(move |to| write(&*alive(&of)?, to))
}

/// The directory of a process's open files, by their numbers.
struct Opened {
    parent: Arc<Inode>,
    of: Weak<Process>,
}

impl Opened {
    fn new(parent: &Arc<Inode>, of: &Weak<Process>) -> Self {
        Opened {
            parent: parent.clone(),
            of: of.clone(),
        }
    }
}

impl Live for Opened {
    fn parent(&self) -> Option<Arc<Inode>> {
        Some(self.parent.clone())
    }

    fn name(&self) -> Name {
        b"fd".to_vec()
    }

    fn get(&self, _: &Arc<Inode>, name: &[u8]) -> Result<Arc<Inode>, Errno> {
        let process = self.of.upgrade().ok_or(Errno::NOENT)?;
        let number = live::number(name)?;
        let file = process.files.lock().get(number).map(|it| it.file.clone());
        let file = file.map_err(|_| Errno::NOENT)?;
        Ok(Jump::inode(file.inode().clone(), None))
    }

    fn next(&self, from: u64) -> Option<(u64, Name)> {
        let process = self.of.upgrade()?;
        let number = process.files.lock().from(usize::try_from(from).ok()?)?;
        Some((number as u64, number.to_string().into_bytes()))
    }
}

/// Texts with which the process's program has started; empty once it has ended.
fn given(process: &Process, of: fn(&Start) -> &Texts, to: &mut Sheet) -> Result<(), Errno> {
    let start = process.start.lock().clone();
    match task::state(process, process.pid) {
        'Z' => Ok(()),
        _ => to.add(&of(&start).bytes),
    }
}

fn maps(process: &Process, to: &mut Sheet) -> Result<(), Errno> {
    let Ok(space) = process.space() else {
        return Ok(());
    };
    let regions = space.regions()?;
    named(&space, regions.iter(), |names| {
        vm::proc::write_maps(&regions, names, to)
    })
}

fn smaps(process: &Process, to: &mut Sheet) -> Result<(), Errno> {
    let Ok(space) = process.space() else {
        return Ok(());
    };
    let mut from = 0;
    loop {
        let footprints = space.scan(from, vm::proc::TOGETHER)?;
        let Some(last) = footprints.last() else {
            return Ok(());
        };
        from = last.region.range.end;
        named(&space, footprints.iter().map(|it| &it.region), |names| {
            vm::proc::write_smaps(&footprints, names, to)
        })?;
    }
}

/// Calls `write` with the names of the objects that the regions show. The file of a process that
/// has ended is empty.
fn named<'a>(
    space: &Space,
    regions: impl Iterator<Item = &'a Region>,
    write: impl FnOnce(&vm::proc::Names) -> fmt::Result,
) -> Result<(), Errno> {
    let files = Names::of_objects(regions.filter_map(|region| Some(region.object?.id)))?;
    let names = vm::proc::Names {
        heap: space.heap(),
        stack: STACK_END - 1,
        file: &|object| files.of(object),
    };
    Ok(write(&names)?)
}

/// The process's mappings; empty once it has ended.
pub(super) fn footprint(process: &Process) -> Result<(Stats, Vec<Region>), Errno> {
    match process.space() {
        Ok(space) => Ok((space.stats(), space.regions()?)),
        Err(_) => Ok(Default::default()),
    }
}

/// The bytes of those `regions` for which `such` returns true.
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
fn statm(process: &Process, to: &mut Sheet) -> Result<(), Errno> {
    let (stats, regions) = footprint(process)?;
    let Stats { usage, .. } = stats;
    let stack = bytes(&regions, is_stack) / PAGE_SIZE;
    Ok(writeln!(
        to,
        "{} {} {} {} 0 {} 0",
        usage.mapped,
        stats.resident(),
        stats.file + stats.shared,
        bytes(&regions, is_code) / PAGE_SIZE,
        usage.data as usize + stack,
    )?)
}

/// The file `pagemap`: where each page of the process is.
struct PageMap(Arc<Process>);

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
