//! `/proc`, `/sys` and the devices: the kernel's additions to the initial file system.

mod machine;
mod memory;
mod process;
mod sys;
mod task;

pub use memory::amounts;

use super::{Device, Directory, Inode, Kind, Name, made};
use crate::abi::Errno;
use crate::heap;
use crate::process::Process;
use crate::profile;
use crate::system::system;
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

/// The links beside them: the caller's open files.
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Adds them to the root.
pub fn mount() -> Result<(), Errno> {
    let root = &system().root;
    let top = root.directory()?;
    top.replace(b"proc", proc(root))?;
    top.replace(b"sys", sys::tree(root))?;
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

/// The directory `name` in `parent`, which is made if it is not there.
fn directory(parent: &Arc<Inode>, name: &str, mode: u32) -> Result<Arc<Inode>, Errno> {
    add(parent, name, || {
        let empty = Directory::new(Arc::downgrade(parent));
        Inode::new(Kind::Directory(empty), mode)
    })
}

/// The inode called `name` in `parent`; `make` makes it if there is none.
fn add(
    parent: &Arc<Inode>,
    name: &str,
    make: impl FnOnce() -> Arc<Inode>,
) -> Result<Arc<Inode>, Errno> {
    let entries = parent.directory()?;
    if let Some(there) = entries.get(name.as_bytes()) {
        return Ok(there);
    }
    let new = make();
    entries.add(name.as_bytes(), new.clone())?;
    Ok(new)
}

/// `/proc`: a directory for each process beside the files of the whole system.
fn proc(root: &Arc<Inode>) -> Arc<Inode> {
    made::searched(Arc::downgrade(root), |proc| {
        let whole = made::entries([
            ("self", made::link(caller)),
            ("meminfo", made::text(memory::meminfo)),
            ("cpuinfo", made::text(machine::cpuinfo)),
            ("stat", made::text(machine::stat)),
            ("uptime", made::text(machine::uptime)),
            ("version", made::text(machine::version)),
            ("filesystems", made::text(machine::filesystems)),
            ("profile", made::text(profile::text)),
            ("mounts", made::link(|| Ok(b"self/mounts".to_vec()))),
            ("sys", sys::settings(proc.clone())),
        ]);
        let (known, of_list, of_find) = (whole.clone(), proc.clone(), proc.clone());
        let entry = |proc: &Weak<Inode>, process: &Arc<Process>| {
            let name = process.pid.to_string().into_bytes();
            (name, process::tree(proc, process))
        };
        let list = move || {
            if heap::is_short() {
                return Err(Errno::NOMEM);
            }
            let processes = system().processes.all();
            let processes = processes.iter().map(|it| entry(&of_list, it));
            Ok(whole.iter().cloned().chain(processes).collect())
        };
        let find = move |name: &[u8]| {
            let process = || {
                let pid = str::from_utf8(name).ok()?.parse().ok()?;
                Some(entry(&of_find, &system().processes.get(pid)?))
            };
            let known = known.iter().find(|(its, _)| its == name).cloned();
            // A number has one name: without zeroes in front of it.
            let found = known.or_else(process).filter(|(its, _)| its == name);
            found.map(|(_, inode)| inode)
        };
        (list, find)
    })
}

/// The number of the process that asks.
fn caller() -> Result<Name, Errno> {
    let pid = crate::process::with_current(|thread| thread.map(|it| it.process.pid));
    Ok(pid.ok_or(Errno::NOENT)?.to_string().into_bytes())
}

/// The process, if it has not gone.
fn alive(process: &Weak<Process>) -> Result<Arc<Process>, Errno> {
    process.upgrade().ok_or(Errno::SRCH)
}
