//! `/proc/PID/limits`.

use crate::errno::Errno;
use crate::fs::live::Sheet;
use crate::process::{Process, limits};
use alloc::string::{String, ToString};
use core::fmt::Write;
use linux_raw_sys::general::*;

/// The limits, their names and units, in Linux's order.
const ROWS: [(u32, &str, &str); 16] = [
    (RLIMIT_CPU, "Max cpu time", "seconds"),
    (RLIMIT_FSIZE, "Max file size", "bytes"),
    (RLIMIT_DATA, "Max data size", "bytes"),
    (RLIMIT_STACK, "Max stack size", "bytes"),
    (RLIMIT_CORE, "Max core file size", "bytes"),
    (RLIMIT_RSS, "Max resident set", "bytes"),
    (RLIMIT_NPROC, "Max processes", "processes"),
    (RLIMIT_NOFILE, "Max open files", "files"),
    (RLIMIT_MEMLOCK, "Max locked memory", "bytes"),
    (RLIMIT_AS, "Max address space", "bytes"),
    (RLIMIT_LOCKS, "Max file locks", "locks"),
    (RLIMIT_SIGPENDING, "Max pending signals", "signals"),
    (RLIMIT_MSGQUEUE, "Max msgqueue size", "bytes"),
    (RLIMIT_NICE, "Max nice priority", ""),
    (RLIMIT_RTPRIO, "Max realtime priority", ""),
    (RLIMIT_RTTIME, "Max realtime timeout", "us"),
];

/// The process's limits.
pub fn table(process: &Process, to: &mut Sheet) -> Result<(), Errno> {
    let mut row = |name: &str, soft: &str, hard: &str, unit: &str| -> Result<(), Errno> {
        Ok(writeln!(to, "{name:<25} {soft:<20} {hard:<20} {unit:<10}")?)
    };
    row("Limit", "Soft Limit", "Hard Limit", "Units")?;
    for (resource, name, unit) in ROWS {
        let limit = process.limits.lock().get(resource as usize)?;
        row(name, &value(limit.soft), &value(limit.hard), unit)?;
    }
    Ok(())
}

fn value(limit: u64) -> String {
    match limit {
        limits::NONE => String::from("unlimited"),
        limit => limit.to_string(),
    }
}
