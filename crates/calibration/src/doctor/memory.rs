//! Memory, and the kernel's own activity on it.

use super::{Finding, Host};

/// Huge pages, address randomisation, NUMA balancing, free memory.
pub fn check(host: &Host) -> Vec<Finding> {
    vec![
        huge_pages(host),
        randomisation(host),
        balancing(host),
        free(host),
    ]
}

fn huge_pages(host: &Host) -> Finding {
    const NAME: &str = "huge pages";
    match host.environment.thp.as_deref() {
        None => Finding::unknown(NAME, host.unknown("thp")),
        Some("always") => Finding::advice(
            NAME,
            "always: page faults map 2 MiB where they can, so page_fault1 does not count pages",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Some(other) => Finding::ok(NAME, other),
    }
}

fn randomisation(host: &Host) -> Finding {
    const NAME: &str = "address randomisation";
    match host.environment.aslr.as_deref() {
        None => Finding::unknown(NAME, host.unknown("aslr")),
        Some("0") => Finding::ok(NAME, "off"),
        Some(level) => Finding::advice(
            NAME,
            format!("{level}: runs differ in their layout, more runs average that out"),
            "sysctl kernel.randomize_va_space=0",
        ),
    }
}

fn balancing(host: &Host) -> Finding {
    const NAME: &str = "NUMA balancing";
    let nodes = host.environment.numa_nodes.as_deref();
    let several = nodes.is_some_and(|list| list.contains(['-', ',']));
    match host.environment.numa_balancing.as_deref() {
        None => Finding::unknown(NAME, host.unknown("numa_balancing")),
        Some("0") => Finding::ok(NAME, "off"),
        Some(_) if !several => Finding::ok(NAME, "on, but there is one node"),
        Some(_) => Finding::advice(
            NAME,
            "on: the kernel unmaps pages and moves them between nodes during measurements",
            "sysctl kernel.numa_balancing=0",
        ),
    }
}

/// The memory that page_fault1 with a task on each CPU needs.
fn free(host: &Host) -> Finding {
    const NAME: &str = "free memory";
    let available = host.field("proc/meminfo", "MemAvailable");
    let Some(kib) = available.ok().and_then(|kib| kib.parse::<u64>().ok()) else {
        return Finding::unknown(NAME, "not known (/proc/meminfo)");
    };
    let limit = host.environment.cgroup_memory.as_deref();
    let limit = limit
        .and_then(|bytes| bytes.parse().ok())
        .unwrap_or(u64::MAX);
    let (free, needed) = ((kib << 10).min(limit), host.cpus() * workloads::SIZE as u64);
    let found = format!("{} MiB", free >> 20);
    if free >= needed {
        Finding::ok(NAME, found)
    } else {
        Finding::change(
            NAME,
            format!(
                "{found}; page_fault1 on all CPUs touches {} MiB",
                needed >> 20
            ),
            format!(
                "measure with fewer tasks: `-t {}`",
                (free / workloads::SIZE as u64).max(1)
            ),
        )
    }
}
