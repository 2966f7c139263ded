//! `/proc/sys`, and the processors in `/sys`.

use crate::abi::{Errno, NODE, RELEASE, VERSION};
use crate::fs::Inode;
use crate::fs::made::{self, Entries};
use crate::system::system;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::{Arc, Weak};
use machine::Topology;
use metal::Metal;
use vm::Overcommit;

/// A file with one line.
fn line<T: ToString + Send + Sync + 'static>(
    value: impl Fn() -> T + Send + Sync + 'static,
) -> Arc<Inode> {
    made::text(move || Ok(format!("{}\n", value().to_string())))
}

/// `/proc/sys`, in `proc`. Its files can be read.
pub fn settings(proc: Weak<Inode>) -> Arc<Inode> {
    made::fixed(proc, |sys| {
        made::entries([
            ("kernel", made::fixed(sys.clone(), kernel)),
            ("vm", made::fixed(sys.clone(), memory)),
        ])
    })
}

fn kernel(_: &Weak<Inode>) -> Entries {
    made::entries([
        ("ostype", line(|| "Linux")),
        ("osrelease", line(|| RELEASE)),
        ("version", line(|| VERSION)),
        ("hostname", line(|| NODE)),
        // One above the highest; programs add to it.
        ("pid_max", line(|| i32::MAX / 2)),
        // Addresses are the same in each run.
        ("randomize_va_space", line(|| 0)),
    ])
}

fn memory(_: &Weak<Inode>) -> Entries {
    let overcommit = || match system().vm.overcommit() {
        Overcommit::Heuristic => 0,
        Overcommit::Always => 1,
        Overcommit::Never => 2,
    };
    made::entries([
        ("overcommit_memory", line(overcommit)),
        // There is no limit.
        ("max_map_count", line(|| i32::MAX)),
    ])
}

/// `/sys`, in `root`.
pub fn tree(root: &Arc<Inode>) -> Arc<Inode> {
    made::fixed(Arc::downgrade(root), |sys| {
        let devices = made::fixed(sys.clone(), |devices| {
            let system = made::fixed(devices.clone(), |system| {
                let cpu = made::fixed(system.clone(), processors);
                made::entries([("cpu", cpu)])
            });
            made::entries([("system", system)])
        });
        made::entries([("devices", devices)])
    })
}

fn processors(cpu: &Weak<Inode>) -> Entries {
    let mut entries =
        made::entries(["online", "possible", "present"].map(|name| (name, made::text(all))));
    for number in 0..Metal.cpus().len() {
        let one = made::fixed(cpu.clone(), |_| Entries::new());
        entries.push((format!("cpu{number}").into_bytes(), one));
    }
    entries
}

/// The CPUs, from the first to the last.
fn all() -> Result<String, Errno> {
    Ok(match Metal.cpus().len() {
        1 => String::from("0\n"),
        cpus => format!("0-{}\n", cpus - 1),
    })
}
