//! The description of a machine: this one, and invented ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stats::environment::{Environment, Tool, Topology, collect, collect_below};

const TOOL: Tool<'_> = Tool {
    version: "scalevm 0.1.0",
    commit: Some("abc123-dirty"),
    arguments: &[],
};

/// A root directory with the given files, removed at the end.
struct Root(PathBuf);

impl Root {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let root =
            std::env::temp_dir().join(format!("scalevm-environment-{name}-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(root)
    }

    fn describe(&self) -> Environment {
        collect_below(&self.0, &TOOL, Duration::ZERO)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Every value is either present or explained, never both.
fn assert_explained(environment: &Environment) {
    let fields = serde_json::to_value(environment).unwrap();
    for (name, value) in fields.as_object().unwrap() {
        assert_eq!(
            value.is_null(),
            environment.missing.contains_key(name),
            "{name}: {value}, {:?}",
            environment.missing.get(name)
        );
    }
}

#[test]
fn this_machine_is_described() {
    let mut here = collect(&TOOL);
    assert_explained(&here);
    assert_eq!(here.missing["load_after"], "not measured");
    here.observe_after();
    assert_explained(&here);
    if Path::new("/proc/sys/kernel/osrelease").exists() {
        assert!(
            here.kernel
                .as_deref()
                .is_some_and(|kernel| kernel.starts_with("Linux ")),
            "{here:?}"
        );
        assert!(
            here.page_size
                .is_some_and(|size| size.is_power_of_two() && size >= 4096),
            "{here:?}"
        );
        assert!(
            here.load_after
                .is_some_and(|load| load.cpus >= 1 && load.foreign <= f64::from(load.cpus)),
            "{here:?}"
        );
        assert_eq!(here.boot_id.as_deref().map(str::len), Some(36));
    }
}

#[test]
fn an_empty_machine_gives_reasons_only() {
    let root = Root::new("empty", &[]);
    let environment = root.describe();
    assert_explained(&environment);
    assert_eq!(environment.commit.as_deref(), Some("abc123-dirty"));
    assert!(
        environment.missing["governor"]
            .starts_with("/sys/devices/system/cpu/cpufreq: No such file"),
        "{environment:?}"
    );
    assert!(
        environment.missing["load_before"].starts_with("/proc/stat: "),
        "{environment:?}"
    );
}

#[test]
fn a_made_up_machine_is_read_field_by_field() {
    let cpu = "sys/devices/system/cpu";
    let mut files: Vec<(String, &str)> = vec![
        ("proc/sys/kernel/ostype".into(), "Linux\n"),
        ("proc/sys/kernel/osrelease".into(), "9.1\n"),
        ("proc/sys/kernel/version".into(), "#1\n"),
        (
            "proc/cpuinfo".into(),
            "model\t\t: 85\nmodel name\t: A: CPU\ncpu family\t: 6\nstepping\t: 7\nflags\t\t: fpu \
             hypervisor\n",
        ),
        (format!("{cpu}/online"), "0-1,4\n"),
        (format!("{cpu}/vulnerabilities/meltdown"), "Not affected\n"),
        (
            format!("{cpu}/cpufreq/policy0/scaling_governor"),
            "performance\n",
        ),
        (
            format!("{cpu}/cpufreq/policy4/scaling_governor"),
            "powersave\n",
        ),
        (
            format!("{cpu}/cpufreq/policy0/scaling_min_freq"),
            "900000\n",
        ),
        (
            format!("{cpu}/cpufreq/policy4/scaling_min_freq"),
            "1000000\n",
        ),
        (
            format!("{cpu}/cpufreq/policy0/scaling_max_freq"),
            "3000000\n",
        ),
        (
            format!("{cpu}/cpufreq/policy4/scaling_max_freq"),
            "900001\n",
        ),
        (
            "sys/kernel/mm/transparent_hugepage/enabled".into(),
            "always [madvise] never\n",
        ),
        ("proc/self/cgroup".into(), "4:memory:/x\n0::/a/b\n"),
        ("sys/fs/cgroup/a/b/cpu.max".into(), "max 100000\n"),
        ("sys/fs/cgroup/a/cpu.max".into(), "50000 100000\n"),
        ("sys/fs/cgroup/a/b/memory.max".into(), "max\n"),
        ("sys/class/dmi/id/sys_vendor".into(), "Maker\n"),
        ("sys/class/dmi/id/product_name".into(), "Box\n"),
    ];
    for (number, socket, core) in [(0, "0", "0"), (1, "0", "0"), (4, "1", "0")] {
        files.push((
            format!("{cpu}/cpu{number}/topology/physical_package_id"),
            socket,
        ));
        files.push((format!("{cpu}/cpu{number}/topology/core_id"), core));
    }
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (path.as_str(), *text))
        .collect();
    let e = Root::new("made-up", &files).describe();
    assert_explained(&e);
    assert_eq!(e.kernel.as_deref(), Some("Linux 9.1 #1"));
    assert_eq!(
        (e.cpu.as_deref(), e.stepping.as_deref()),
        (Some("A: CPU"), Some("6-85-7"))
    );
    assert_eq!(
        (e.cpus, e.topology),
        (
            Some(3),
            Some(Topology {
                sockets: 2,
                cores: 2,
                threads: 3
            })
        )
    );
    assert_eq!(e.mitigations.as_ref().unwrap()["meltdown"], "Not affected");
    assert_eq!(
        (e.governor.as_deref(), e.frequency_khz),
        (Some("performance,powersave"), Some((900_000, 3_000_000)))
    );
    assert_eq!(e.thp.as_deref(), Some("madvise"));
    assert_eq!(
        (e.cgroup_cpu.as_deref(), e.cgroup_memory.as_deref()),
        (Some("50000 100000"), Some("max"))
    );
    assert_eq!(e.hypervisor.as_deref(), Some("Maker Box"));
    assert_eq!(e.missing["microcode"], "/proc/cpuinfo: no `microcode`");
}
