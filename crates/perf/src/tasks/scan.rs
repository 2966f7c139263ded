//! /proc's record of processes that already run.

use super::{Files, Image, Process};
use crate::event::Mapping;
use std::collections::BTreeMap;
use std::fs;
use std::io;

/// The numbers of all processes.
pub(crate) fn processes() -> io::Result<Vec<u32>> {
    numbers("/proc")
}

/// `roots` and all their descendants. This process is none, with all that it starts, unless it is a
/// root: the watched shell may have started the recording.
pub(crate) fn descendants(roots: &[u32]) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let own = std::process::id();
    for pid in processes().unwrap_or_default() {
        if pid == own {
            continue;
        }
        let parent = fs::read_to_string(format!("/proc/{pid}/stat")).ok();
        if let Some(parent) = parent.as_deref().and_then(parent_of) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = Vec::new();
    let mut open = roots.to_vec();
    while let Some(pid) = open.pop() {
        if !found.contains(&pid) {
            open.extend(children.get(&pid).into_iter().flatten());
            found.push(pid);
        }
    }
    found
}

/// The process of a thread; none if it is gone.
pub(crate) fn leader(tid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line?.trim().parse().ok()
}

/// A thread that has not ended.
#[derive(Debug)]
pub(crate) struct Found {
    pub tid: u32,
    pub name: String,
    /// True if it neither runs nor waits for a CPU.
    is_asleep: bool,
}

impl Found {
    /// The function of the kernel in which it sleeps, empty if the kernel does not tell; none if it
    /// did not sleep when it was found.
    pub fn sleeps_in(&self) -> Option<String> {
        let function = || fs::read_to_string(format!("/proc/{}/wchan", self.tid));
        let function = self.is_asleep.then(function)?;
        Some(function.ok().filter(|name| name != "0").unwrap_or_default())
    }
}

/// The threads of a process that have not ended; none if it is gone.
pub(crate) fn threads(pid: u32) -> io::Result<Vec<Found>> {
    let path = format!("/proc/{pid}/task");
    match numbers(&path) {
        Err(error) if is_gone(&error) => Ok(Vec::new()),
        Err(error) => Err(io::Error::new(error.kind(), format!("{path}: {error}"))),
        Ok(tids) => Ok(tids
            .into_iter()
            .filter_map(|tid| thread(pid, tid))
            .collect()),
    }
}

/// A thread; none if it has ended.
fn thread(pid: u32, tid: u32) -> Option<Found> {
    let stat = fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?;
    let state = field(&stat, 0)?;
    (!matches!(state, "Z" | "X")).then_some(Found {
        tid,
        name: named(&stat)?.to_owned(),
        is_asleep: state != "R",
    })
}

/// Returns true if a file of /proc cannot be read because its process has ended.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

/// A process's name and executable memory.
pub(crate) fn process(pid: u32, files: &mut Files) -> io::Result<Process> {
    let name = name(pid)?;
    let mut image = Image::new().below(&root(pid));
    // Another user's, or just gone: its stacks will lack names, nothing else.
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    for mapping in maps.lines().filter_map(executable) {
        image.map(&mapping, files);
    }
    Ok(Process { name, image })
}

/// The name of a process.
pub(crate) fn name(number: u32) -> io::Result<String> {
    let name = fs::read_to_string(format!("/proc/{number}/comm"))?;
    Ok(name.trim_end().to_owned())
}

/// Where the files of a process are: empty if it has this process's root directory and mounts, or
/// does not tell.
fn root(pid: u32) -> String {
    let place = |pid: &str| {
        let mounts = fs::read_link(format!("/proc/{pid}/ns/mnt")).ok()?;
        Some((mounts, fs::read_link(format!("/proc/{pid}/root")).ok()?))
    };
    let (own, theirs) = (place("self"), place(&pid.to_string()));
    match theirs {
        Some(_) if theirs != own => format!("/proc/{pid}/root"),
        _ => String::new(),
    }
}

fn numbers(directory: &str) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(directory)?.flatten();
    Ok(entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect())
}

/// Field 4 of a `stat` line.
fn parent_of(stat: &str) -> Option<u32> {
    field(stat, 1)?.parse().ok()
}

/// The name in a `stat` line.
fn named(stat: &str) -> Option<&str> {
    let (before, _) = stat.rsplit_once(')')?;
    before.split_once('(').map(|(_, name)| name.trim_end())
}

/// A field of a `stat` line, from the state on; the name in brackets may contain anything.
fn field(stat: &str, index: usize) -> Option<&str> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(index)
}

/// A line of `maps`, if the mapping is executable.
fn executable(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let hex = |word| u64::from_str_radix(word, 16).ok();
    words.next()?.contains('x').then_some(())?;
    let (start, end, offset) = (hex(start)?, hex(end)?, hex(words.next()?)?);
    let path = match words.nth(2).unwrap_or_default().trim_start() {
        "" => "//anon",
        path => path,
    };
    Some(Mapping {
        start,
        end,
        offset,
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_can_run_is_kept() {
        let code = "55d0-55f0 r-xp 00001000 fe:00 123                        /bin/a b";
        let mapping = Mapping {
            start: 0x55d0,
            end: 0x55f0,
            offset: 0x1000,
            path: "/bin/a b".into(),
        };
        assert_eq!(executable(code), Some(mapping));
        assert_eq!(
            executable("55d0-55f0 rw-p 00001000 fe:00 123   /bin/a"),
            None
        );
        let anonymous = executable("10-20 rwxp 00000000 00:00 0 ").expect("a mapping");
        assert_eq!(anonymous.path, "//anon");
    }

    #[test]
    fn a_bracket_in_a_name_does_not_confuse() {
        let stat = "12 (a) b) c) S 7 1";
        assert_eq!((parent_of(stat), named(stat)), (Some(7), Some("a) b) c")));
        assert_eq!(parent_of("nonsense"), None);
    }

    #[test]
    fn a_thread_that_sleeps_is_told_from_one_that_runs() {
        let own = std::process::id();
        // SAFETY: the call takes no arguments.
        let tid = unsafe { libc::gettid() } as u32;
        let is_asleep = |tid| thread(own, tid).map(|found| found.is_asleep);
        assert_eq!((is_asleep(tid), leader(tid)), (Some(false), Some(own)));
        let (sender, receiver) = std::sync::mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            // SAFETY: the call takes no arguments.
            sender
                .send(unsafe { libc::gettid() } as u32)
                .expect("heard");
            std::thread::park();
        });
        let tid = receiver.recv().expect("a number");
        let sleeps = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(5));
            is_asleep(tid) == Some(true)
        });
        sleeper.thread().unpark();
        sleeper.join().expect("ends");
        assert!(sleeps && leader(u32::MAX).is_none());
    }

    #[test]
    fn this_process_is_found() {
        let own = std::process::id();
        let mut files = Files::default();
        let process = process(own, &mut files).expect("it is there");
        assert!(!process.name.is_empty());
        let here = this_process_is_found as *const () as u64;
        let place = process.image.find(here).expect("this is mapped");
        let exe = std::env::current_exe().expect("an executable");
        assert_eq!(files.names()[place.file as usize], exe.to_string_lossy());
        assert!(descendants(&[own]).contains(&own));
        let found = threads(own).expect("it is there");
        let first = found.iter().find(|thread| thread.tid == own);
        assert_eq!(first.map(|thread| &thread.name), name(own).ok().as_ref());
        assert!(threads(u32::MAX).expect("gone").is_empty());
    }
}
