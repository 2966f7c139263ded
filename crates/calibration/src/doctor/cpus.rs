//! The CPUs: which there are, and how fast they go.

use super::{Finding, Host};

const FOLDER: &str = "sys/devices/system/cpu";

/// Governor, turbo, hardware threads, CPUs out of use, mitigations.
pub fn check(host: &Host) -> Vec<Finding> {
    vec![
        governor(host),
        turbo(host),
        smt(host),
        offline(host),
        isolated(host),
        mitigations(host),
    ]
}

fn governor(host: &Host) -> Finding {
    const NAME: &str = "frequency governor";
    match host.environment.governor.as_deref() {
        None if host.has(FOLDER) && !host.has(&format!("{FOLDER}/cpufreq")) => {
            Finding::ok(NAME, "none: this kernel does not change frequencies")
        }
        None => Finding::unknown(NAME, host.unknown("governor")),
        Some("performance") => Finding::ok(NAME, "performance"),
        Some(other) => Finding::change(
            NAME,
            format!("{other}: the frequency follows the load"),
            "cpupower frequency-set -g performance",
        ),
    }
}

/// With few tasks CPUs go faster than with many, so curves bend that should not.
fn turbo(host: &Host) -> Finding {
    const NAME: &str = "turbo";
    let switches = [("intel_pstate/no_turbo", 0, 1), ("cpufreq/boost", 1, 0)];
    for (file, on, off) in switches {
        let path = format!("{FOLDER}/{file}");
        match host.number(&path) {
            Ok(state) if state == on => {
                return Finding::advice(
                    NAME,
                    "on: few tasks run at a higher frequency than many",
                    format!("echo {off} > /{path}"),
                );
            }
            Ok(_) => return Finding::ok(NAME, "off"),
            Err(_) => {}
        }
    }
    Finding::unknown(NAME, "not shown by this kernel")
}

fn smt(host: &Host) -> Finding {
    const NAME: &str = "hardware threads";
    match host.environment.smt.as_deref() {
        None => Finding::unknown(NAME, host.unknown("smt")),
        Some("on") => Finding::ok(NAME, "on; tasks go to cores first, with --smt to threads"),
        Some(other) => Finding::ok(NAME, other),
    }
}

fn offline(host: &Host) -> Finding {
    const NAME: &str = "CPUs offline";
    match host.text(&format!("{FOLDER}/offline")) {
        Ok(list) if !list.is_empty() => Finding::advice(
            NAME,
            format!("{list} are not used"),
            format!("chcpu -e {list}"),
        ),
        Ok(_) => Finding::ok(NAME, "none"),
        Err(reason) => Finding::unknown(NAME, format!("not known ({reason})")),
    }
}

fn isolated(host: &Host) -> Finding {
    const NAME: &str = "CPUs isolated";
    match host.text(&format!("{FOLDER}/isolated")) {
        Ok(list) if !list.is_empty() => Finding::advice(
            NAME,
            format!("{list} are quiet, and used only on request"),
            format!("taskset -c {list} scalevm …"),
        ),
        Ok(_) => Finding::ok(NAME, "none"),
        Err(reason) => Finding::unknown(NAME, format!("not known ({reason})")),
    }
}

/// Mitigations add to the cost of each system call; results record them, so that comparisons can
/// take them into account.
fn mitigations(host: &Host) -> Finding {
    const NAME: &str = "mitigations";
    let Some(all) = &host.environment.mitigations else {
        return Finding::unknown(NAME, host.unknown("mitigations"));
    };
    let active = all.values().filter(|state| state.starts_with("Mitigation"));
    let found = format!(
        "{} of {} active, recorded with results",
        active.count(),
        all.len()
    );
    Finding::ok(NAME, found)
}
