//! The limits that the system sets this process.

use super::{Finding, Host};
use bench::MAX_TASKS;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Descriptors of a task at most (context_switch1 as threads), and of the command itself.
const DESCRIPTORS: (u64, u64) = (4, 32);
/// Tasks and their partners, and threads of the command itself.
const PROCESSES: (u64, u64) = (2, 8);

/// Space for temporary files, descriptors, processes.
pub fn check(host: &Host) -> Vec<Finding> {
    vec![
        disk(host),
        limit(
            host,
            "open files",
            "Max open files",
            "ulimit -n",
            DESCRIPTORS,
        ),
        limit(host, "processes", "Max processes", "ulimit -u", PROCESSES),
    ]
}

/// The disk space that page_fault3 with a task on each CPU writes.
fn disk(host: &Host) -> Finding {
    const NAME: &str = "temporary files";
    let directory = host.temporary.display();
    let needed = host.cpus() * workloads::SIZE as u64;
    match free(&host.temporary) {
        Some(bytes) if bytes >= needed => {
            Finding::ok(NAME, format!("{} MiB free in {directory}", bytes >> 20))
        }
        Some(bytes) => Finding::advice(
            NAME,
            format!(
                "{} MiB free in {directory}; page_fault3 on all CPUs writes {} MiB",
                bytes >> 20,
                needed >> 20
            ),
            "TMPDIR=/dev/shm scalevm …",
        ),
        None => Finding::advice(
            NAME,
            format!("{directory} cannot be used"),
            "TMPDIR=/dev/shm scalevm …",
        ),
    }
}

/// Bytes that this user may still write in `directory`.
fn free(directory: &Path) -> Option<u64> {
    let path = CString::new(directory.as_os_str().as_bytes()).ok()?;
    // SAFETY: a path that ends in a zero byte; a zeroed `statvfs` is valid and is filled.
    let found = unsafe {
        let mut found: libc::statvfs = std::mem::zeroed();
        (libc::statvfs(path.as_ptr(), &mut found) == 0).then_some(found)
    }?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Compares a line of /proc/self/limits with the need of most tasks.
fn limit(
    host: &Host,
    name: &'static str,
    line: &str,
    command: &str,
    (each, own): (u64, u64),
) -> Finding {
    let limits = host.text("proc/self/limits").unwrap_or_default();
    let soft = limits
        .lines()
        .find_map(|text| text.strip_prefix(line)?.split_whitespace().next());
    let needed = each * u64::from(MAX_TASKS) + own;
    match soft.map(|word| (word, word.parse::<u64>())) {
        None => Finding::unknown(name, format!("not known (/proc/self/limits: no `{line}`)")),
        Some((_, Ok(most))) if most < needed => {
            let tasks = most.saturating_sub(own) / each;
            Finding::advice(
                name,
                format!("{most}: enough for {tasks} of {MAX_TASKS} tasks"),
                format!("{command} {needed}"),
            )
        }
        Some((word, _)) => Finding::ok(name, word),
    }
}
