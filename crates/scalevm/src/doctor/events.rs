//! What the kernel and the CPU can report.

use super::{Finding, Host};
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Tracepoints and the cycle counter.
pub fn check(host: &Host) -> Vec<Finding> {
    vec![tracepoints(host), cycles(host)]
}

/// Waits for locks of the kernel are seen at a pair of tracepoints.
fn tracepoints(host: &Host) -> Finding {
    const NAME: &str = "lock tracepoints";
    let mounts = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
    let Some(mount) = mounts
        .iter()
        .find(|mount| host.has(&format!("{mount}/events")))
    else {
        let found = "no tracefs to be seen, so no waits for the kernel's locks";
        let mounts = host.text("proc/mounts");
        return match mounts.is_ok_and(|all| all.contains(" tracefs ")) {
            true => Finding::advice(
                NAME,
                found,
                "run as root, or `mount -o remount,mode=755 /sys/kernel/tracing`",
            ),
            false => Finding::advice(NAME, found, "mount -t tracefs tracefs /sys/kernel/tracing"),
        };
    };
    let pair = ["contention_begin", "contention_end"];
    match pair
        .iter()
        .all(|one| host.has(&format!("{mount}/events/lock/{one}")))
    {
        true => Finding::ok(NAME, format!("in /{mount}")),
        false => Finding::advice(
            NAME,
            format!("not in /{mount}, so waits for the kernel's locks are not seen"),
            "use a kernel from 5.19 on",
        ),
    }
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

/// The beginning of the kernel's `perf_event_attr`, as its first version had it.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    address: u64,
}

/// Opens a counter of this process's cycles and closes it.
pub fn count_cycles() -> io::Result<()> {
    const HARDWARE: u32 = 0;
    const CYCLES: u64 = 0;
    const DISABLED: u64 = 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    let attributes = Attributes {
        kind: HARDWARE,
        size: size_of::<Attributes>() as u32,
        config: CYCLES,
        flags: DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
        ..Attributes::default()
    };
    // SAFETY: `attributes` has the size it says; this process, any CPU, no group, no flags.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &attributes,
            0,
            -1,
            -1,
            0 as libc::c_ulong,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, and nobody else's.
    drop(unsafe { OwnedFd::from_raw_fd(fd as i32) });
    Ok(())
}
