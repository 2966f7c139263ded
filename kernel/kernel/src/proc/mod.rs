//! `/proc`, `/sys` and the devices: the kernel's additions to the initial file system.

mod limits;
mod machine;
mod memory;
mod process;
mod sys;
mod task;

pub use memory::amounts;

use crate::errno::Errno;
use crate::fs::live::{self, Entry, Table};
use crate::fs::{Device, Directory, Inode, Kind, Live, Name, ROOT};
use crate::process::{PROCESSES, Process, with_current};
use crate::profile;
use alloc::string::ToString;
use alloc::sync::{Arc, Weak};

/// The contents of `/dev`.
const DEVICES: [(&str, Device); 8] = [
    ("console", Device::Console),
    ("tty", Device::Terminal),
    ("null", Device::Null),
    ("zero", Device::Zero),
    ("full", Device::Full),
    ("random", Device::Random),
    ("urandom", Device::Random),
    ("profile", Device::Profile),
];

/// The links in `/dev` to the caller's open files.
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Adds `/proc`, `/sys` and `/dev` to the root.
pub fn mount() -> Result<(), Errno> {
    let root = &*ROOT;
    let top = root.directory()?;
    top.put(b"proc", live::directory(Proc::new(root)))?;
    top.put(b"sys", sys::tree(root)?)?;
    for (device, what) in DEVICES {
        add(&directory(root, "dev", 0o755)?, device, || {
            Inode::new(Kind::Device(what), 0o666)
        })?;
    }
    for (name, to) in LINKS {
        add(&directory(root, "dev", 0o755)?, name, || {
            Inode::new(Kind::Link(to.as_bytes().to_vec()), 0o777)
        })?;
    }
    directory(&directory(root, "dev", 0o755)?, "shm", 0o1777)?;
    directory(root, "tmp", 0o1777)?;
    Ok(())
}

/// The directory `name` in `parent`, which is created if it does not exist.
fn directory(parent: &Arc<Inode>, name: &str, mode: u32) -> Result<Arc<Inode>, Errno> {
    add(parent, name, || {
        let empty = Directory::new(Arc::downgrade(parent));
        Inode::new(Kind::Directory(empty), mode)
    })
}

/// The inode `name` in `parent`, which `make` creates if it does not exist.
fn add(
    parent: &Arc<Inode>,
    name: &str,
    make: impl FnOnce() -> Arc<Inode>,
) -> Result<Arc<Inode>, Errno> {
    let entries = parent.directory()?;
    match entries.get(parent, name.as_bytes()) {
        Err(Errno::NOENT) => entries.add(name.as_bytes(), || Ok(make())),
        there => there,
    }
}

/// The files of the whole system.
const WHOLE: &[Entry<()>] = &[
    ("self", |_, _| live::link(caller()?.to_string().as_bytes())),
    ("meminfo", |_, _| live::text(memory::meminfo)),
    ("cpuinfo", |_, _| live::text(machine::cpuinfo)),
    ("stat", |_, _| live::text(machine::stat)),
    ("uptime", |_, _| live::text(machine::uptime)),
    ("loadavg", |_, _| live::text(machine::loadavg)),
    ("version", |_, _| live::text(machine::version)),
    ("filesystems", |_, _| live::text(machine::filesystems)),
    ("profile", |_, _| live::text(|to| Ok(profile::text(to)?))),
    ("mounts", |_, _| live::link(b"self/mounts")),
    ("sys", |proc, _| sys::settings(proc)),
];

/// `/proc`: the files of the whole system, then a directory for each process.
struct Proc(Table<()>);

/// The position of the first process.
const FIRST: u64 = 256;

impl Proc {
    fn new(root: &Arc<Inode>) -> Self {
        Proc(Table {
            parent: root.clone(),
            name: b"proc".to_vec(),
            of: (),
            entries: WHOLE,
        })
    }
}

impl Live for Proc {
    fn parent(&self) -> Option<Arc<Inode>> {
        self.0.parent()
    }

    fn name(&self) -> Name {
        self.0.name()
    }

    fn get(&self, own: &Arc<Inode>, name: &[u8]) -> Result<Arc<Inode>, Errno> {
        match live::number(name) {
            Ok(pid) => {
                let process = PROCESSES.get(pid).ok_or(Errno::NOENT)?;
                Ok(process::tree(own, &process))
            }
            Err(_) => self.0.get(own, name),
        }
    }

    fn next(&self, from: u64) -> Option<(u64, Name)> {
        self.0.next(from).or_else(|| {
            let least = u32::try_from(from.saturating_sub(FIRST)).ok()?;
            let pid = PROCESSES.from(least)?;
            Some((FIRST + u64::from(pid), pid.to_string().into_bytes()))
        })
    }
}

/// The number of the calling process.
fn caller() -> Result<u32, Errno> {
    let pid = with_current(|thread| thread.map(|it| it.process.pid));
    pid.ok_or(Errno::NOENT)
}

/// The process, if it still exists.
fn alive(process: &Weak<Process>) -> Result<Arc<Process>, Errno> {
    process.upgrade().ok_or(Errno::SRCH)
}
