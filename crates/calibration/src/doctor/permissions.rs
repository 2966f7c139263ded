//! The parts of the kernel that this user may see.

use super::{Finding, Host};

const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYSLOG: u32 = 34;
const CAP_PERFMON: u32 = 38;

/// KiB of sample buffers for each CPU: three of 2 MiB, and their headers.
const BUFFERS: i64 = 8192;

/// The process's rights, as far as they are known.
pub(super) struct Rights {
    user: String,
    effective: Result<u64, String>,
}

impl Rights {
    pub(super) fn of(host: &Host) -> Self {
        let status = |key| host.field("proc/self/status", key);
        let number = |text: String| {
            let number = u64::from_str_radix(&text, 16);
            number.map_err(|_| format!("/proc/self/status: CapEff is `{text}`"))
        };
        Rights {
            user: status("Uid").unwrap_or_else(|_| "?".into()),
            effective: status("CapEff").and_then(number),
        }
    }

    pub(super) fn is_root(&self) -> bool {
        self.user == "0"
    }

    fn has(&self, capability: u32) -> bool {
        let effective = self.effective.as_ref().copied().unwrap_or(0);
        effective >> capability & 1 == 1
    }

    /// Returns true if it may watch the kernel and all processes.
    fn may_trace(&self) -> bool {
        self.has(CAP_PERFMON) || self.has(CAP_SYS_ADMIN)
    }
}

/// Capabilities, and the settings that bind processes without them.
pub fn check(host: &Host) -> Vec<Finding> {
    let rights = Rights::of(host);
    vec![
        capabilities(host, &rights),
        paranoid(host, &rights),
        symbols(host, &rights),
        buffers(host, &rights),
    ]
}

fn capabilities(host: &Host, rights: &Rights) -> Finding {
    const NAME: &str = "rights";
    if let Err(reason) = &rights.effective {
        return Finding::unknown(NAME, format!("not known ({reason})"));
    }
    let user = &rights.user;
    let hidden =
        format!("user {user} without CAP_PERFMON: the kernel's stacks and locks stay hidden");
    match (rights.may_trace(), rights.has(CAP_SYS_ADMIN)) {
        (true, true) => Finding::ok(NAME, format!("user {user} with CAP_SYS_ADMIN")),
        (true, false) => Finding::ok(NAME, format!("user {user} with CAP_PERFMON")),
        (false, _) if rights.is_root() => Finding::advice(
            NAME,
            hidden,
            "give the container the capability (`docker run --cap-add PERFMON …`)",
        ),
        (false, _) => Finding::advice(
            NAME,
            hidden,
            format!(
                "sudo setcap cap_perfmon,cap_syslog,cap_ipc_lock=ep {}",
                host.executable.display()
            ),
        ),
    }
}

fn paranoid(host: &Host, rights: &Rights) -> Finding {
    const NAME: &str = "perf_event_paranoid";
    match host.number("proc/sys/kernel/perf_event_paranoid") {
        Err(reason) if !host.has("proc/sys/kernel") => {
            Finding::unknown(NAME, format!("not known ({reason})"))
        }
        Err(reason) => Finding::advice(
            NAME,
            format!("{reason}: no profile of the kernel"),
            "use a kernel with CONFIG_PERF_EVENTS",
        ),
        Ok(level) if rights.may_trace() => {
            Finding::ok(NAME, format!("{level}, which does not bind this user"))
        }
        Ok(level) if level < 0 => Finding::ok(NAME, level.to_string()),
        Ok(level) => Finding::advice(
            NAME,
            format!("{level}: this user may not watch tracepoints on all CPUs"),
            "sysctl kernel.perf_event_paranoid=-1",
        ),
    }
}

fn symbols(host: &Host, rights: &Rights) -> Finding {
    const NAME: &str = "kptr_restrict";
    match host.number("proc/sys/kernel/kptr_restrict") {
        Err(reason) => Finding::unknown(NAME, format!("not known ({reason})")),
        Ok(0) => Finding::ok(NAME, "0"),
        Ok(1) if rights.has(CAP_SYSLOG) => Finding::ok(NAME, "1, which does not bind this user"),
        Ok(level) => Finding::advice(
            NAME,
            format!("{level}: the kernel's functions have no names"),
            "sysctl kernel.kptr_restrict=0",
        ),
    }
}

fn buffers(host: &Host, rights: &Rights) -> Finding {
    const NAME: &str = "perf_event_mlock_kb";
    let unbound =
        rights.has(CAP_IPC_LOCK) || host.number("proc/sys/kernel/perf_event_paranoid") == Ok(-1);
    match host.number("proc/sys/kernel/perf_event_mlock_kb") {
        Err(reason) => Finding::unknown(NAME, format!("not known ({reason})")),
        Ok(size) if unbound => Finding::ok(NAME, format!("{size}, which does not bind this user")),
        Ok(size) if size >= BUFFERS => Finding::ok(NAME, size.to_string()),
        Ok(size) => Finding::advice(
            NAME,
            format!("{size}: too little for sample buffers of 2 MiB"),
            format!("sysctl kernel.perf_event_mlock_kb={BUFFERS}"),
        ),
    }
}
