//! The files of a thread in `/proc`: in `/proc/PID` for the first, in `/proc/PID/task/TID` for
//! each.

use super::alive;
use super::process::{bytes, footprint, is_code, is_stack};
use crate::errno::Errno;
use crate::fs::live::{self, Entry, Sheet, Table};
use crate::fs::{Inode, Live, Name};
use crate::process::{NAME, Process};
use crate::users::Ids;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::Ordering;
use machine::PAGE_SIZE;

/// Nanoseconds of a tick, the unit of times in `stat`.
const TICK: u64 = 10_000_000;

/// The directory of a process's threads, by their numbers.
struct Tasks {
    parent: Arc<Inode>,
    of: Weak<Process>,
}

/// The directory `task` of a process, in its directory.
pub fn tree(parent: &Arc<Inode>, of: &Weak<Process>) -> Arc<Inode> {
    live::directory(Tasks {
        parent: parent.clone(),
        of: of.clone(),
    })
}

impl Live for Tasks {
    fn parent(&self) -> Option<Arc<Inode>> {
        Some(self.parent.clone())
    }

    fn name(&self) -> Name {
        b"task".to_vec()
    }

    fn get(&self, own: &Arc<Inode>, name: &[u8]) -> Result<Arc<Inode>, Errno> {
        let process = self.of.upgrade().ok_or(Errno::NOENT)?;
        let tid = live::number(name)?;
        // The first thread's directory remains as long as the process.
        if tid != process.pid && process.thread(tid).is_none() {
            return Err(Errno::NOENT);
        }
        Ok(live::directory(Table {
            parent: own.clone(),
            name: name.to_vec(),
            of: Task {
                process: self.of.clone(),
                tid,
            },
            entries: ENTRIES,
        }))
    }

    fn next(&self, from: u64) -> Option<(u64, Name)> {
        let process = self.of.upgrade()?;
        let threads = process.threads.lock();
        let tids = threads.iter().map(|thread| thread.tid());
        let tids = tids.chain([process.pid]).map(u64::from);
        let tid = tids.filter(|&tid| tid >= from).min()?;
        Some((tid, tid.to_string().into_bytes()))
    }
}

/// A thread.
#[derive(Clone)]
struct Task {
    process: Weak<Process>,
    tid: u32,
}

/// The files of a thread.
const ENTRIES: &[Entry<Task>] = &[
    ("status", |_, of| text(of, status)),
    ("stat", |_, of| text(of, stat)),
    ("comm", |_, of| text(of, comm)),
];

fn text(
    of: &Task,
    write: fn(&Process, u32, &mut Sheet) -> Result<(), Errno>,
) -> Result<Arc<Inode>, Errno> {
    let of = of.clone();
    live::text(move |to| write(&*alive(&of.process)?, of.tid, to))
}

/// The thread's name, in a line.
pub fn comm(process: &Process, tid: u32, to: &mut Sheet) -> Result<(), Errno> {
    Ok(writeln!(to, "{}", name(process, tid))?)
}

/// The thread's name; empty if it has ended.
fn name(process: &Process, tid: u32) -> String {
    let name = process.thread(tid).map_or([0; NAME], |it| *it.name.lock());
    let end = name.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&name[..end.unwrap_or(NAME)]).into_owned()
}

/// The letter of the thread's state: ended, stopped, sleeping or running.
pub fn state(process: &Process, tid: u32) -> char {
    // Acquire: pairs with the release in `Thread::finish`.
    let has_finished = process.has_finished.load(Ordering::Acquire);
    let has_others = || !process.threads.lock().is_empty();
    match process.thread(tid) {
        _ if has_finished => 'Z',
        None if has_others() => 'Z',
        _ if process.job.is_stopped() => 'T',
        Some(thread) if thread.is_asleep() => 'S',
        _ => 'R',
    }
}

/// Those of Linux's lines that apply here. All users are root.
pub fn status(process: &Process, tid: u32, to: &mut Sheet) -> Result<(), Errno> {
    let (stats, regions) = footprint(process)?;
    let pid = process.pid;
    let state = match state(process, tid) {
        'Z' => "Z (zombie)",
        'T' => "T (stopped)",
        'S' => "S (sleeping)",
        _ => "R (running)",
    };
    let users = process.users.lock().clone();
    let lines = [
        (
            "Name",
            name(process, tid)
                .replace('\\', "\\\\")
                .replace('\n', "\\n"),
        ),
        (
            "Umask",
            format!("{:04o}", process.umask.load(Ordering::Relaxed)),
        ),
        ("State", String::from(state)),
        ("Tgid", format!("{pid}")),
        ("Pid", format!("{tid}")),
        ("PPid", format!("{}", process.family.parent_number())),
        ("Uid", ids(users.user)),
        ("Gid", ids(users.group)),
    ];
    for (name, value) in lines {
        writeln!(to, "{name}:\t{value}")?;
    }
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
        writeln!(to, "{name}:\t{:>8} kB", bytes >> 10)?;
    }
    let groups: Vec<_> = users.groups.iter().map(u32::to_string).collect();
    writeln!(to, "Groups:\t{} ", groups.join(" "))?;
    let threads = process.threads.lock().len();
    writeln!(to, "Threads:\t{threads}")?;
    signals(process, tid, to)?;
    let size = process.files.lock().size();
    writeln!(to, "FDSize:\t{size}\nSeccomp:\t0")?;
    let Some(thread) = process.thread(tid) else {
        return Ok(());
    };
    let affinity = *thread.affinity.lock();
    let sleeps = thread.usage.used().sleeps;
    writeln!(to, "Cpus_allowed:\t{}", mask(affinity.words()))?;
    Ok(writeln!(to, "voluntary_ctxt_switches:\t{sleeps}")?)
}

/// A set of CPUs in hexadecimal, the highest first, with a comma after each 32.
fn mask(words: impl Iterator<Item = u64>) -> String {
    let halves = words.flat_map(|word| [word as u32, (word >> 32) as u32]);
    let mut groups: Vec<u32> = halves.collect();
    while groups.len() > 1 && groups.last() == Some(&0) {
        groups.pop();
    }
    let mut groups = groups.into_iter().rev();
    let first = format!("{:x}", groups.next().unwrap_or(0));
    groups.fold(first, |text, group| format!("{text},{group:08x}"))
}

/// The parts of a user or a group, as `status` has them.
fn ids(ids: Ids) -> String {
    let Ids {
        real,
        effective,
        saved,
        of_files,
    } = ids;
    format!("{real}\t{effective}\t{saved}\t{of_files}")
}

/// The signals that are pending for the thread and for all, that it blocks, and that the process
/// ignores and handles.
fn signals(process: &Process, tid: u32, to: &mut Sheet) -> Result<(), Errno> {
    let (pending, mask) = process
        .thread(tid)
        .map_or((0, 0), |thread| (thread.pending.set().0, thread.mask().0));
    let [ignored, handled] = process.handlers.lock().sets();
    for (name, set) in [
        ("SigPnd", pending),
        ("ShdPnd", process.pending.set().0),
        ("SigBlk", mask),
        ("SigIgn", ignored.0),
        ("SigCgt", handled.0),
    ] {
        writeln!(to, "{name}:\t{set:016x}")?;
    }
    Ok(())
}

/// Linux's 52 numbers; those that are not counted are 0.
pub fn stat(process: &Process, tid: u32, to: &mut Sheet) -> Result<(), Errno> {
    /// The positions of some of the numbers, from 1.
    const GROUP: usize = 5;
    const SESSION: usize = 6;
    const USER: usize = 14;
    const KERNEL: usize = 15;
    const USER_OF_CHILDREN: usize = 16;
    const KERNEL_OF_CHILDREN: usize = 17;
    const THREADS: usize = 20;
    const START: usize = 22;
    const SIZE: usize = 23;
    const RESIDENT: usize = 24;
    const COUNT: usize = 52;
    let (stats, _) = footprint(process)?;
    let thread = process.thread(tid);
    let used = match &thread {
        Some(thread) if tid != process.pid => thread.usage.used(),
        _ => process.used(),
    };
    let of_children = *process.family.used.lock();
    let start = thread.map_or(0, |thread| thread.usage.start());
    write!(
        to,
        "{} ({}) {} {}",
        tid,
        name(process, tid),
        state(process, tid),
        process.family.parent_number()
    )?;
    for place in 5..=COUNT {
        let number = match place {
            GROUP => process.job.group().into(),
            SESSION => process.job.session().into(),
            USER => used.user / TICK,
            KERNEL => used.kernel / TICK,
            USER_OF_CHILDREN => of_children.user / TICK,
            KERNEL_OF_CHILDREN => of_children.kernel / TICK,
            THREADS => process.threads.lock().len() as u64,
            START => start / TICK,
            SIZE => stats.usage.mapped * PAGE_SIZE as u64,
            RESIDENT => stats.resident(),
            _ => 0,
        };
        write!(to, " {number}")?;
    }
    Ok(writeln!(to)?)
}
