//! The events that the kernel and the CPU can report.

use super::permissions::Rights;
use super::{Finding, Host};
use std::io;

/// Tracepoints and the cycle counter.
pub fn check(host: &Host) -> Vec<Finding> {
    vec![tracepoints(host), cycles(host)]
}

/// Waits for locks of the kernel are seen at a pair of tracepoints.
fn tracepoints(host: &Host) -> Finding {
    const NAME: &str = "lock tracepoints";
    let rights = Rights::of(host);
    let refused = match host.tracepoints.map(|open| open()) {
        Some(Ok(())) => return Finding::ok(NAME, "can be opened"),
        Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => return lacking(NAME),
        Some(Err(error)) => Some(error),
        None => None,
    };
    let mounts = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
    let Some(mount) = mounts
        .iter()
        .find(|mount| host.has(&format!("{mount}/events")))
    else {
        let found = "no tracefs is visible, so waits for the kernel's locks are not seen";
        let is_hidden = match host.text("proc/mounts") {
            Ok(all) => all.contains(" tracefs ") && !rights.is_root(),
            Err(reason) if !host.has("sys/kernel") => {
                return Finding::unknown(NAME, format!("not known ({reason})"));
            }
            Err(_) => false,
        };
        return if is_hidden {
            Finding::advice(
                NAME,
                found,
                "run as root, or `mount -o remount,mode=755 /sys/kernel/tracing`",
            )
        } else {
            Finding::advice(NAME, found, "mount -t tracefs tracefs /sys/kernel/tracing")
        };
    };
    let pair = ["contention_begin", "contention_end"];
    let there = pair
        .iter()
        .all(|one| host.has(&format!("{mount}/events/lock/{one}")));
    match (there, refused) {
        (true, None) => Finding::ok(NAME, format!("in /{mount}")),
        (true, Some(error)) => Finding::advice(
            NAME,
            format!(
                "in /{mount}, and cannot be opened ({error}), so waits for the kernel's locks are \
                 not seen"
            ),
            if rights.is_root() {
                "the container must be allowed perf_event_open and CAP_PERFMON"
            } else {
                "run as root; see rights and perf_event_paranoid"
            },
        ),
        (false, _) => lacking(NAME),
    }
}

/// The kernel does not have them.
fn lacking(name: &'static str) -> Finding {
    Finding::advice(
        name,
        "this kernel has none: waits for its locks are seen where threads go off CPU, and spin in \
         samples",
        "use Linux 5.19 or later",
    )
}

fn cycles(host: &Host) -> Finding {
    const NAME: &str = "cycle counter";
    let error = match (host.cycles)() {
        Ok(()) => return Finding::ok(NAME, "works"),
        Err(error) => error,
    };
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => "see rights and perf_event_paranoid",
        _ => "give a virtual machine a PMU (QEMU: `-cpu host,pmu=on`)",
    };
    Finding::advice(
        NAME,
        format!("none ({error}): busy time is sampled by the clock"),
        advice,
    )
}
