//! The machine that a result comes from, so that the result can be judged and repeated later.
//!
//! Facts come from /proc and /sys, without privileges and without running a program. An unreadable
//! fact is `null`, and `missing` says why: a result without a governor is one whose governor is
//! unknown, not one with a default.

mod cpus;
mod difference;
mod load;
mod numbers;
mod sources;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use cpus::listed_cpus;
pub use difference::Difference;
pub use load::{Load, LoadMeter};
pub use numbers::numbers_are_ours;

/// The time for which the load of others is watched before a run, and again after it.
pub const LOAD_WINDOW: Duration = Duration::from_millis(250);

/// Describes this machine (Linux) and watches the load on it for [`LOAD_WINDOW`]: call it before
/// the run, while the tool itself is idle.
pub fn collect(tool: &Tool<'_>) -> Environment {
    collect_below(Path::new("/"), tool, LOAD_WINDOW)
}

/// Describes the machine whose files are below `root`, such as a tree copied from another machine.
pub fn collect_below(root: &Path, tool: &Tool<'_>, window: Duration) -> Environment {
    let mut environment = sources::describe(root, tool);
    environment.observe("load_before", root, window);
    let not_yet = || "not measured".to_string();
    environment.missing.insert("load_after".into(), not_yet());
    environment
}

/// The measuring program's own description.
#[derive(Clone, Copy, Debug)]
pub struct Tool<'a> {
    /// Name and version.
    pub version: &'a str,
    /// The commit it was built from, with `-dirty` if the tree had changes.
    pub commit: Option<&'a str>,
    /// Its arguments, in full.
    pub arguments: &'a [String],
}

/// A machine, as described by [`collect`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Environment {
    /// Name and version of the tool.
    pub version: String,
    /// Commit of the tool.
    pub commit: Option<String>,
    /// Arguments of the tool.
    pub arguments: Vec<String>,
    /// Kernel: name, release, build.
    pub kernel: Option<String>,
    /// Instruction set.
    pub architecture: String,
    /// Changes with every boot.
    pub boot_id: Option<String>,
    /// The kernel's command line.
    pub cmdline: Option<String>,
    /// CPU model.
    pub cpu: Option<String>,
    /// CPU family, model and stepping.
    pub stepping: Option<String>,
    /// Microcode revision.
    pub microcode: Option<String>,
    /// CPUs online.
    pub cpus: Option<u32>,
    /// Sockets, cores and hardware threads of those CPUs.
    pub topology: Option<Topology>,
    /// NUMA nodes, as a list of ranges.
    pub numa_nodes: Option<String>,
    /// `1` if the kernel migrates pages between nodes, otherwise `0`.
    pub numa_balancing: Option<String>,
    /// Use of hardware threads: `on`, `off`, `notsupported`…
    pub smt: Option<String>,
    /// State of each hardware vulnerability's mitigation.
    pub mitigations: Option<BTreeMap<String, String>>,
    /// Frequency governor(s).
    pub governor: Option<String>,
    /// Lowest and highest frequency allowed, in kHz.
    pub frequency_khz: Option<(u64, u64)>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub thp: Option<String>,
    /// Address space randomisation: `0`, `1` or `2`.
    pub aslr: Option<String>,
    /// Bytes of a page.
    pub page_size: Option<u64>,
    /// CPU time that this control group may use: `max`, or quota and period.
    pub cgroup_cpu: Option<String>,
    /// Memory that it may use: `max`, or bytes.
    pub cgroup_memory: Option<String>,
    /// The hypervisor, or `none`.
    pub hypervisor: Option<String>,
    /// The source of the clock's time.
    pub clocksource: Option<String>,
    /// Load of others before the run.
    pub load_before: Option<Load>,
    /// Load of others after the run.
    pub load_after: Option<Load>,
    /// The reason for each `null` above.
    pub missing: BTreeMap<String, String>,
}

/// How the CPUs are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    pub sockets: u32,
    /// Cores of all sockets.
    pub cores: u32,
    /// Hardware threads of all cores.
    pub threads: u32,
}

impl Environment {
    /// Watches the load for another [`LOAD_WINDOW`]: call it after the run.
    pub fn observe_after(&mut self) {
        self.observe("load_after", Path::new("/"), LOAD_WINDOW);
    }

    /// The kernel's release: `6.18.5` of `Linux 6.18.5 #1 SMP …`.
    pub fn release(&self) -> Option<&str> {
        self.kernel.as_deref().map(difference::release)
    }

    /// The default label of a run on the system `on`: the kernel on `os`, otherwise the tool
    /// itself.
    pub fn measured(&self, on: &str) -> Option<String> {
        match on {
            "os" => self.release().map(str::to_owned),
            _ => self.commit.clone(),
        }
    }

    fn observe(&mut self, name: &str, root: &Path, window: Duration) {
        let load = LoadMeter::start(root).and_then(|meter| {
            std::thread::sleep(window);
            meter.finish()
        });
        let load = self.known(name, load);
        match name {
            "load_before" => self.load_before = load,
            _ => self.load_after = load,
        }
    }

    /// A value, or `None`, with the reason stored.
    fn known<T>(&mut self, name: &str, found: Result<T, String>) -> Option<T> {
        self.missing.remove(name);
        found
            .map_err(|reason| self.missing.insert(name.into(), reason))
            .ok()
    }

    /// Refuses a `null` without a reason.
    pub(crate) fn check(&self) -> Result<(), String> {
        let fields = serde_json::to_value(self).map_err(|error| error.to_string())?;
        let fields = fields.as_object().into_iter().flatten();
        for (name, _) in fields.filter(|(_, value)| value.is_null()) {
            if !self.missing.contains_key(name) {
                return Err(format!(
                    "`machine.{name}` is null without a reason in `machine.missing`"
                ));
            }
        }
        Ok(())
    }
}
