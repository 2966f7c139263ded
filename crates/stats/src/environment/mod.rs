//! The machine a result was taken on, so that it can be judged and repeated later.
//!
//! Read from /proc and /sys, without rights and without running a program. What cannot be read is `null`, and `missing` says why:
//! a result without its governor is a result whose governor nobody knows, not one with a default.

mod difference;
mod load;
mod sources;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use difference::Difference;
pub use load::{Load, LoadMeter};

/// How long the load of others is watched before and after a run.
pub const LOAD_WINDOW: Duration = Duration::from_millis(250);

/// Describes this machine (Linux), watching the load on it for [`LOAD_WINDOW`]: call it before the run, when the tool itself idles.
pub fn collect(tool: &Tool<'_>) -> Environment {
    collect_below(Path::new("/"), tool, LOAD_WINDOW)
}

/// The same with `root` in place of `/`, as for a tree copied from another machine.
pub fn collect_below(root: &Path, tool: &Tool<'_>, window: Duration) -> Environment {
    let mut environment = sources::describe(root, tool);
    environment.observe("load_before", root, window);
    let not_yet = || "not measured".to_string();
    environment.missing.insert("load_after".into(), not_yet());
    environment
}

/// The program that measures, as it describes itself.
#[derive(Clone, Copy, Debug)]
pub struct Tool<'a> {
    /// Name and version.
    pub version: &'a str,
    /// The commit it was built from, with `-dirty` if there were changes.
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
    /// Sockets, cores and hardware threads of those.
    pub topology: Option<Topology>,
    /// NUMA nodes, as a list of ranges.
    pub numa_nodes: Option<String>,
    /// Whether pages migrate between nodes by themselves: `0` or `1`.
    pub numa_balancing: Option<String>,
    /// Whether hardware threads are used: `on`, `off`, `notsupported`…
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
    /// CPU time allowed to this control group: `max`, or quota and period.
    pub cgroup_cpu: Option<String>,
    /// Memory allowed to it: `max`, or bytes.
    pub cgroup_memory: Option<String>,
    /// The hypervisor, or `none`.
    pub hypervisor: Option<String>,
    /// The clock that timestamps come from.
    pub clocksource: Option<String>,
    /// Load of others before the run.
    pub load_before: Option<Load>,
    /// Load of others after the run.
    pub load_after: Option<Load>,
    /// Why each `null` above is one.
    pub missing: BTreeMap<String, String>,
}

/// How the CPUs hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Topology {
    /// Sockets.
    pub sockets: u32,
    /// Cores of all sockets.
    pub cores: u32,
    /// Hardware threads of all cores.
    pub threads: u32,
}

impl Environment {
    /// Watches the load again for [`LOAD_WINDOW`]: call it after the run.
    pub fn observe_after(&mut self) {
        self.observe("load_after", Path::new("/"), LOAD_WINDOW);
    }

    /// The kernel's release: `6.18.5` of `Linux 6.18.5 #1 SMP …`.
    pub fn release(&self) -> Option<&str> {
        self.kernel.as_deref().map(difference::release)
    }

    /// What a run on the system `on` measures if nobody says: on `os` the kernel, else the tool itself.
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

    /// A value, or `None` with its reason kept.
    fn known<T>(&mut self, name: &str, found: Result<T, String>) -> Option<T> {
        self.missing.remove(name);
        found
            .map_err(|reason| self.missing.insert(name.into(), reason))
            .ok()
    }

    /// Refuses a value missing without a reason.
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
