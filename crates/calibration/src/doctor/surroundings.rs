//! The computer's surroundings, and other users of it.

use super::{Finding, Host};
use stats::count;
use std::path::Path;

/// Virtual machine, container, quota, load of others, clock.
pub fn check(host: &Host) -> Vec<Finding> {
    vec![
        machine(host),
        container(host),
        quota(host),
        load(host),
        clock(host),
    ]
}

fn machine(host: &Host) -> Finding {
    const NAME: &str = "machine";
    match host.environment.hypervisor.as_deref() {
        Some("none") => Finding::ok(NAME, "bare metal"),
        Some(hypervisor) => Finding::advice(
            NAME,
            format!(
                "virtual ({hypervisor}): exits and the host's other guests are part of figures"
            ),
            "measure on bare metal, or give it CPUs of its own (`virsh vcpupin`)",
        ),
        None => Finding::unknown(NAME, host.unknown("hypervisor")),
    }
}

fn container(host: &Host) -> Finding {
    const NAME: &str = "container";
    let marks = [".dockerenv", "run/.containerenv", "run/systemd/container"];
    match marks.iter().find(|mark| host.has(mark)) {
        Some(mark) => Finding::advice(
            NAME,
            format!("/{mark} exists: limits and rights are those of a container"),
            "run outside, or `docker run --privileged --pid=host …`, to see the whole computer",
        ),
        None => Finding::ok(NAME, "none"),
    }
}

/// A group that may not use all CPUs all the time is stopped in the middle of samples.
fn quota(host: &Host) -> Finding {
    const NAME: &str = "CPU quota";
    let Some(limit) = host.environment.cgroup_cpu.as_deref() else {
        // A hierarchy without the file has no limit.
        return if host.has("sys/fs/cgroup/cgroup.controllers") && host.has("proc/self/cgroup") {
            Finding::ok(NAME, "none")
        } else {
            Finding::unknown(NAME, host.unknown("cgroup_cpu"))
        };
    };
    let numbers: Vec<f64> = limit
        .split(' ')
        .map_while(|word| word.parse().ok())
        .collect();
    match numbers[..] {
        [quota, period] if quota < period * host.cpus() as f64 => Finding::change(
            NAME,
            format!("{:.2} of {}", quota / period, count(host.cpus(), "CPU")),
            format!("echo max > /{}", quota_file(host)),
        ),
        _ => Finding::ok(NAME, limit),
    }
}

/// The file with that quota: the nearest above this process that has one.
fn quota_file(host: &Host) -> String {
    let groups = host.text("proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let files = Path::new(own.unwrap_or_default()).ancestors();
    let mut files = files.map(|group| {
        let file = Path::new("sys/fs/cgroup").join(group).join("cpu.max");
        file.display().to_string()
    });
    let limited = |file: &String| host.text(file).is_ok_and(|quota| !quota.starts_with("max"));
    files
        .find(limited)
        .unwrap_or_else(|| "sys/fs/cgroup/cpu.max".into())
}

fn load(host: &Host) -> Finding {
    const NAME: &str = "load of others";
    let Some(load) = host.environment.load_before else {
        return Finding::unknown(NAME, host.unknown("load_before"));
    };
    let found = format!(
        "{:.2} of {} used by others, {:.2} stolen by the host",
        load.foreign,
        count(load.cpus, "CPU"),
        load.steal
    );
    match (load.quiet(), load.foreign >= load.steal) {
        (true, _) => Finding::ok(NAME, found),
        (false, true) => Finding::change(
            NAME,
            found,
            "stop the programs that `top -b -n 1 -o %CPU | head -20` shows",
        ),
        (false, false) => Finding::change(NAME, found, "stop the host's other guests"),
    }
}

/// A slow clock makes each reading a system call or worse.
fn clock(host: &Host) -> Finding {
    const NAME: &str = "clock source";
    const FOLDER: &str = "sys/devices/system/clocksource/clocksource0";
    let Some(clock) = host.environment.clocksource.as_deref() else {
        return Finding::unknown(NAME, host.unknown("clocksource"));
    };
    if !["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies"].contains(&clock) {
        return Finding::ok(NAME, clock);
    }
    let others = host.text(&format!("{FOLDER}/available_clocksource"));
    let advice = if others.is_ok_and(|all| all.split(' ').any(|one| one == "tsc")) {
        format!("echo tsc > /{FOLDER}/current_clocksource")
    } else {
        "boot the kernel with `tsc=reliable`, if the CPU's counter is".to_owned()
    };
    Finding::change(NAME, format!("{clock}: slow to read"), advice)
}
