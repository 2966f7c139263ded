//! What `/proc` tells of a thread: in `/proc/PID` of the first, in `/proc/PID/task/TID` of each.

use super::alive;
use super::process::{bytes, footprint, is_code, is_stack};
use crate::abi::{Errno, NAME};
use crate::fs::made;
use crate::fs::{Inode, Name};
use crate::process::Process;
use alloc::format;
use alloc::string::String;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::Ordering;
use machine::PAGE_SIZE;

/// The directory `task` of a process, in its directory.
pub fn tree(directory: &Weak<Inode>, of: &Weak<Process>) -> Arc<Inode> {
    let of = of.clone();
    made::listed(directory.clone(), |itself| {
        let itself = itself.clone();
        move || {
            let tids = tids(&*alive(&of)?);
            Ok(tids.map(|tid| thread(&itself, &of, tid)).collect())
        }
    })
}

/// The numbers of its threads. The first one's stays until the process has gone.
fn tids(process: &Process) -> impl Iterator<Item = u32> + use<> {
    let threads = process.threads.lock();
    let others = threads.iter().map(|thread| thread.tid());
    let others: Vec<u32> = others.filter(|&tid| tid != process.pid).collect();
    [process.pid].into_iter().chain(others)
}

/// The directory of a thread, and its name.
fn thread(tasks: &Weak<Inode>, of: &Weak<Process>, tid: u32) -> (Name, Arc<Inode>) {
    let text = |write: fn(&Process, u32) -> Result<String, Errno>| {
        let of = of.clone();
        made::text(move || write(&*alive(&of)?, tid))
    };
    let entries = [
        ("status", text(status)),
        ("stat", text(stat)),
        ("comm", text(|of, tid| Ok(comm(of, tid)))),
    ];
    let directory = made::fixed(tasks.clone(), |_| made::entries(entries));
    (format!("{tid}").into_bytes(), directory)
}

/// The thread's name, in a line.
pub fn comm(process: &Process, tid: u32) -> String {
    format!("{}\n", name(process, tid))
}

/// The thread's name; nothing if it has ended.
fn name(process: &Process, tid: u32) -> String {
    let name = process.thread(tid).map_or([0; NAME], |it| *it.name.lock());
    let end = name.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&name[..end.unwrap_or(NAME)]).into_owned()
}

/// The letter of the thread's state: it has ended, is stopped, or sleeps, or runs.
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

/// Of Linux's lines those that mean something here. All users are root.
pub fn status(process: &Process, tid: u32) -> Result<String, Errno> {
    let (stats, regions) = footprint(process);
    let mut text = String::new();
    let pid = process.pid;
    let state = match state(process, tid) {
        'Z' => "Z (zombie)",
        'T' => "T (stopped)",
        'S' => "S (sleeping)",
        _ => "R (running)",
    };
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
pub fn stat(process: &Process, tid: u32) -> Result<String, Errno> {
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
        tid,
        name(process, tid),
        state(process, tid),
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
