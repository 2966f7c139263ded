//! The sources of each fact about the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::{Environment, Tool, Topology, listed_cpus};

const CPUS: &str = "sys/devices/system/cpu";

/// Everything but the loads.
pub(super) fn describe(root: &Path, tool: &Tool<'_>) -> Environment {
    let mut e = Environment {
        version: tool.version.into(),
        arguments: tool.arguments.to_vec(),
        architecture: std::env::consts::ARCH.into(),
        ..Environment::default()
    };
    let file = |path: &str| text(root, path);
    let cpuinfo = file("proc/cpuinfo");
    let cpu = |key: &str| cpuinfo.clone().and_then(|info| first_of(&info, key));
    e.commit = e.known(
        "commit",
        tool.commit
            .map(String::from)
            .ok_or("not built from a repository".into()),
    );
    e.kernel = e.known("kernel", kernel(root));
    e.boot_id = e.known("boot_id", file("proc/sys/kernel/random/boot_id"));
    e.cmdline = e.known("cmdline", file("proc/cmdline"));
    e.cpu = e.known("cpu", cpu("model name"));
    let stepping = ["cpu family", "model", "stepping"]
        .map(cpu)
        .into_iter()
        .collect::<Result<Vec<_>, _>>();
    e.stepping = e.known("stepping", stepping.map(|parts| parts.join("-")));
    e.microcode = e.known("microcode", cpu("microcode"));
    e.cpus = e.known("cpus", online(root).map(|cpus| cpus.len() as u32));
    e.topology = e.known("topology", topology(root));
    e.numa_nodes = e.known("numa_nodes", file("sys/devices/system/node/online"));
    e.numa_balancing = e.known("numa_balancing", file("proc/sys/kernel/numa_balancing"));
    e.smt = e.known("smt", file(&format!("{CPUS}/smt/control")));
    e.mitigations = e.known("mitigations", mitigations(root));
    e.governor = e.known(
        "governor",
        policies(root, "scaling_governor").map(|all| all.into_iter().collect::<Vec<_>>().join(",")),
    );
    e.frequency_khz = e.known("frequency_khz", frequencies(root));
    e.thp = e.known(
        "thp",
        file("sys/kernel/mm/transparent_hugepage/enabled").map(|modes| chosen(&modes)),
    );
    e.aslr = e.known("aslr", file("proc/sys/kernel/randomize_va_space"));
    e.page_size = e.known("page_size", page_size(root));
    e.cgroup_cpu = e.known("cgroup_cpu", cgroup_limit(root, "cpu.max"));
    e.cgroup_memory = e.known("cgroup_memory", cgroup_limit(root, "memory.max"));
    e.hypervisor = e.known("hypervisor", hypervisor(root, cpu("flags")));
    e.clocksource = e.known(
        "clocksource",
        file("sys/devices/system/clocksource/clocksource0/current_clocksource"),
    );
    e
}

/// A file's text without its line end; a short reason on failure, which names the file as on the
/// machine.
pub(super) fn text(root: &Path, path: &str) -> Result<String, String> {
    let bytes = fs::read(root.join(path)).map_err(|error| format!("/{path}: {error}"))?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_string())
}

fn kernel(root: &Path) -> Result<String, String> {
    let parts = ["ostype", "osrelease", "version"]
        .map(|part| text(root, &format!("proc/sys/kernel/{part}")));
    Ok(parts.into_iter().collect::<Result<Vec<_>, _>>()?.join(" "))
}

/// The first `key : value` of /proc/cpuinfo.
fn first_of(info: &str, key: &str) -> Result<String, String> {
    let pairs = info.lines().filter_map(|line| line.split_once(':'));
    let mut found = pairs
        .filter(|(name, _)| name.trim() == key)
        .map(|(_, value)| value.trim().to_string());
    found
        .next()
        .ok_or_else(|| format!("/proc/cpuinfo: no `{key}`"))
}

/// CPUs online, from a list of ranges.
fn online(root: &Path) -> Result<Vec<u32>, String> {
    let list = text(root, &format!("{CPUS}/online"))?;
    listed_cpus(&list).ok_or_else(|| format!("/{CPUS}/online: `{list}` is not a list of CPUs"))
}

fn topology(root: &Path) -> Result<Topology, String> {
    let (mut sockets, mut cores) = (BTreeSet::new(), BTreeSet::new());
    let cpus = online(root)?;
    for cpu in &cpus {
        let part = |name: &str| text(root, &format!("{CPUS}/cpu{cpu}/topology/{name}"));
        let socket = part("physical_package_id")?;
        cores.insert((socket.clone(), part("core_id")?));
        sockets.insert(socket);
    }
    Ok(Topology {
        sockets: sockets.len() as u32,
        cores: cores.len() as u32,
        threads: cpus.len() as u32,
    })
}

/// The names in a folder.
fn names(root: &Path, path: &str) -> Result<BTreeSet<String>, String> {
    let entries = fs::read_dir(root.join(path)).map_err(|error| format!("/{path}: {error}"))?;
    let names: BTreeSet<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    if names.is_empty() {
        Err(format!("/{path}: empty"))
    } else {
        Ok(names)
    }
}

fn mitigations(root: &Path) -> Result<BTreeMap<String, String>, String> {
    let folder = format!("{CPUS}/vulnerabilities");
    names(root, &folder)?
        .into_iter()
        .map(|name| Ok((name.clone(), text(root, &format!("{folder}/{name}"))?)))
        .collect()
}

/// The distinct values of the frequency policies.
fn policies(root: &Path, name: &str) -> Result<BTreeSet<String>, String> {
    let folder = format!("{CPUS}/cpufreq");
    let policies = names(root, &folder)?
        .into_iter()
        .filter(|policy| policy.starts_with("policy"));
    let values: BTreeSet<String> = policies
        .map(|policy| text(root, &format!("{folder}/{policy}/{name}")))
        .collect::<Result<_, _>>()?;
    if values.is_empty() {
        Err(format!("/{folder}: no policies"))
    } else {
        Ok(values)
    }
}

fn frequencies(root: &Path) -> Result<(u64, u64), String> {
    let numbers = |name: &str| {
        let values = policies(root, name)?;
        values
            .iter()
            .map(|value| value.parse().map_err(|_| format!("{name}: `{value}`")))
            .collect::<Result<BTreeSet<u64>, _>>()
    };
    let (low, high) = (numbers("scaling_min_freq")?, numbers("scaling_max_freq")?);
    low.first()
        .copied()
        .zip(high.last().copied())
        .ok_or_else(|| "no frequency policies".into())
}

/// The word in brackets: `always [madvise] never`.
fn chosen(modes: &str) -> String {
    let inside = modes
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(modes, |(word, _)| word).to_string()
}

/// The kernel's own value, from the auxiliary vector: pairs of machine words; AT_PAGESZ is 6.
fn page_size(root: &Path) -> Result<u64, String> {
    const PAGE_SIZE: usize = 6;
    let path = "proc/self/auxv";
    let bytes = fs::read(root.join(path)).map_err(|error| format!("/{path}: {error}"))?;
    let (words, _) = bytes.as_chunks::<{ size_of::<usize>() }>();
    let words: Vec<usize> = words
        .iter()
        .map(|word| usize::from_ne_bytes(*word))
        .collect();
    let found = words.chunks_exact(2).find(|pair| pair[0] == PAGE_SIZE);
    found
        .map(|pair| pair[1] as u64)
        .ok_or_else(|| format!("/{path}: no page size"))
}

/// The nearest limit above this process in the unified hierarchy; `max` if no group limits it.
fn cgroup_limit(root: &Path, name: &str) -> Result<String, String> {
    let groups = text(root, "proc/self/cgroup")?;
    let own = groups
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .ok_or("/proc/self/cgroup: no unified hierarchy")?;
    let mut found = Err(format!("no {name} in the groups above {own}"));
    for group in Path::new(own.trim_start_matches('/')).ancestors() {
        if let Ok(limit) = text(
            root,
            &format!("sys/fs/cgroup/{}", group.join(name).display()),
        ) {
            if !limit.starts_with("max") {
                return Ok(limit);
            }
            found = Ok("max".into());
        }
    }
    found
}

fn hypervisor(root: &Path, flags: Result<String, String>) -> Result<String, String> {
    if let Ok(name) = text(root, "sys/hypervisor/type") {
        return Ok(name);
    }
    if !flags?.split(' ').any(|flag| flag == "hypervisor") {
        return Ok("none".into());
    }
    let names =
        ["sys_vendor", "product_name"].map(|name| text(root, &format!("sys/class/dmi/id/{name}")));
    Ok(names
        .into_iter()
        .collect::<Result<Vec<_>, _>>()
        .map_or("unknown".into(), |names| names.join(" ")))
}
