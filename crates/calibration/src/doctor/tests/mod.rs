//! The findings about made-up computers.

mod settings;

use super::{Finding, Host, State, examine};
use stats::environment::Load;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, io};

/// The files of a computer on which nothing is to be changed.
const GOOD: &[(&str, &str)] = &[
    ("proc/cpuinfo", "model name : Some CPU\nflags : fpu tsc\n"),
    (
        "proc/meminfo",
        "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n",
    ),
    ("proc/self/cgroup", "0::/jobs/one\n"),
    (
        "proc/self/status",
        "Name:\tscalevm\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t0000004000000000\n",
    ),
    (
        "proc/self/limits",
        "Max processes  unlimited  unlimited  processes\nMax open files  20000  20000  files\n",
    ),
    ("proc/sys/kernel/perf_event_paranoid", "-1\n"),
    ("proc/sys/kernel/kptr_restrict", "0\n"),
    ("proc/sys/kernel/perf_event_mlock_kb", "516\n"),
    ("proc/sys/kernel/randomize_va_space", "0\n"),
    ("proc/sys/kernel/numa_balancing", "0\n"),
    ("sys/devices/system/node/online", "0-1\n"),
    ("sys/devices/system/cpu/online", "0-3\n"),
    ("sys/devices/system/cpu/offline", "\n"),
    ("sys/devices/system/cpu/isolated", "\n"),
    ("sys/devices/system/cpu/smt/control", "off\n"),
    (
        "sys/devices/system/cpu/cpufreq/policy0/scaling_governor",
        "performance\n",
    ),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
    (
        "sys/devices/system/cpu/vulnerabilities/meltdown",
        "Mitigation: PTI\n",
    ),
    (
        "sys/devices/system/cpu/vulnerabilities/l1tf",
        "Not affected\n",
    ),
    (
        "sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc\n",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
    ("sys/kernel/tracing/events/lock/contention_begin/id", "1\n"),
    ("sys/kernel/tracing/events/lock/contention_end/id", "2\n"),
    ("sys/fs/cgroup/jobs/cpu.max", "max 100000\n"),
    ("bin/cc", ""),
    ("tmp/file", ""),
];

/// A directory that is removed at the end.
struct Root(PathBuf);

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The good computer, with some files different; none where the text is `None`.
fn computer(name: &str, changes: &[(&str, Option<&str>)]) -> (Root, Host) {
    let root = env::temp_dir().join(format!("scalevm-doctor-{name}-{}", std::process::id()));
    let good = GOOD.iter().map(|&(path, text)| (path, Some(text)));
    for (path, text) in good.chain(changes.iter().copied()) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("a folder");
        match text {
            Some(text) => fs::write(&path, text).expect("a file"),
            None => fs::remove_file(&path).expect("one of the good"),
        }
    }
    let mut host = Host::below(&root, Duration::ZERO);
    host.executable = env::current_exe().expect("this test");
    host.cycles = || Ok(());
    // The copied /proc does not change.
    host.environment.load_before = Some(Load {
        foreign: 0.0,
        steal: 0.0,
        cpus: 4,
    });
    (Root(root), host)
}

/// The findings that are not `Ok`; the disk is this computer's, so it is left out.
fn unwell(host: &Host) -> Vec<Finding> {
    let all = examine(host).into_iter();
    all.filter(|one| one.state != State::Ok && one.name != "temporary files")
        .collect()
}

/// Asserts that one thing is found in `state`, with text and advice that begin so.
fn assert_found(findings: &[Finding], name: &str, state: State, found: &str, advice: &str) {
    let [finding] = findings else {
        panic!("{name}: {findings:#?}");
    };
    assert_eq!((finding.name, finding.state), (name, state));
    assert!(finding.found.starts_with(found), "{finding:?}");
    let given = finding.advice.as_deref().expect("advice");
    assert!(given.starts_with(advice), "{finding:?}");
}

#[test]
fn a_good_computer_is_left_alone() {
    let (_root, host) = computer("good", &[]);
    assert_eq!(unwell(&host), []);
    assert_eq!(examine(&host).len(), 26);
    let mitigations = examine(&host)
        .into_iter()
        .find(|one| one.name == "mitigations");
    let found = mitigations.expect("looked at").found;
    assert!(found.starts_with("1 of 2 active"), "{found}");
}

#[test]
fn what_is_not_there_is_noticed() {
    let lock = "sys/kernel/tracing/events/lock/contention_end/id";
    let (root, host) = computer("without", &[(lock, None), ("bin/cc", None)]);
    let findings = unwell(&host);
    assert_eq!(
        findings.len(),
        1,
        "the folder of the tracepoint is still there: {findings:#?}"
    );
    assert_found(
        &findings,
        "C compiler",
        State::Advice,
        "none",
        "apt-get install gcc",
    );
    fs::remove_dir(root.0.join("sys/kernel/tracing/events/lock/contention_end")).expect("empty");
    assert_found(
        &unwell(&host)[..1],
        "lock tracepoints",
        State::Advice,
        "this kernel has none",
        "use Linux",
    );
    fs::remove_dir_all(root.0.join("sys/kernel/tracing")).expect("a folder");
    assert_found(
        &unwell(&host)[..1],
        "lock tracepoints",
        State::Advice,
        "no tracefs",
        "mount -t tracefs tracefs /sys/kernel/tracing",
    );
    let mounts = "tracefs /sys/kernel/tracing tracefs rw,nosuid 0 0\n";
    fs::write(root.0.join("proc/mounts"), mounts).expect("a file");
    assert_found(
        &unwell(&host)[..1],
        "lock tracepoints",
        State::Advice,
        "no tracefs",
        "run as root",
    );
}

/// What is not well of the tracepoints.
fn of_tracepoints(host: &Host) -> Vec<Finding> {
    let mut findings = unwell(host);
    findings.retain(|finding| finding.name == "lock tracepoints");
    findings
}

#[test]
fn tracepoints_that_can_not_be_opened_are_not_well() {
    let (_root, mut host) = computer("closed", &[]);
    host.tracepoints = Some(|| Err(io::ErrorKind::PermissionDenied.into()));
    let findings = of_tracepoints(&host);
    assert_found(
        &findings,
        "lock tracepoints",
        State::Advice,
        "in /sys/kernel/tracing, and cannot be opened (permission denied)",
        "run as root",
    );
}

/// Nobody need mount tracefs for a kernel that has no such tracepoints.
#[test]
fn tracepoints_that_the_kernel_lacks_are_not_hidden() {
    let (root, mut host) = computer("lacking", &[]);
    fs::remove_dir_all(root.0.join("sys/kernel/tracing")).expect("a folder");
    host.tracepoints = Some(|| Err(io::ErrorKind::NotFound.into()));
    let findings = of_tracepoints(&host);
    assert_found(
        &findings,
        "lock tracepoints",
        State::Advice,
        "this kernel has none",
        "use Linux",
    );
}

#[test]
fn a_user_without_rights_is_bound_by_the_level() {
    let files = [
        ("proc/self/status", Some("Uid:\t1000\nCapEff:\t0\n")),
        ("proc/sys/kernel/perf_event_paranoid", Some("2\n")),
        ("proc/sys/kernel/perf_event_mlock_kb", Some("8192\n")),
    ];
    let (_root, host) = computer("level", &files);
    let findings = unwell(&host);
    assert_found(
        &findings[1..],
        "perf_event_paranoid",
        State::Advice,
        "2",
        "sysctl kernel.perf_event_paranoid=-1",
    );
    // Everything, as root has it.
    let all = "Uid:\t0\nCapEff:\t000001ffffffffff\n";
    let files = [
        files[1],
        ("proc/self/status", Some(all)),
        ("proc/sys/kernel/kptr_restrict", Some("1\n")),
    ];
    let (_root, host) = computer("root", &files);
    assert_eq!(unwell(&host), []);
}

#[test]
fn load_counters_and_programs_are_looked_at() {
    let (root, mut host) = computer("load", &[]);
    let load = |foreign, steal| Load {
        foreign,
        steal,
        cpus: 4,
    };
    host.environment.load_before = Some(load(0.02, 0.01));
    assert_eq!(unwell(&host), []);
    host.environment.load_before = Some(load(1.5, 0.1));
    assert_found(
        &unwell(&host),
        "load of others",
        State::Change,
        "1.50 of 4 CPUs used by others",
        "stop the programs that `top",
    );
    host.environment.load_before = Some(load(0.0, 0.3));
    assert_found(
        &unwell(&host),
        "load of others",
        State::Change,
        "0.00 of 4 CPUs",
        "stop the host's",
    );
    host.environment.load_before = Some(load(0.0, 0.0));
    host.cycles = || Err(io::ErrorKind::PermissionDenied.into());
    assert_found(
        &unwell(&host),
        "cycle counter",
        State::Advice,
        "none",
        "see rights",
    );
    host.cycles = || Err(io::ErrorKind::NotFound.into());
    assert_found(
        &unwell(&host),
        "cycle counter",
        State::Advice,
        "none",
        "give a virtual machine a PMU",
    );
    host.cycles = || Ok(());
    host.executable = root.0.join("bin/cc");
    assert_found(
        &unwell(&host),
        "debug information",
        State::Advice,
        "not in ",
        "cargo build --release",
    );
    host.executable = env::current_exe().expect("this test");
    host.temporary = root.0.join("nowhere");
    let all = examine(&host).into_iter();
    let disk: Vec<Finding> = all.filter(|one| one.name == "temporary files").collect();
    assert_found(
        &disk,
        "temporary files",
        State::Advice,
        &host.temporary.display().to_string(),
        "TMPDIR=",
    );
}

#[test]
fn what_cannot_be_seen_is_unknown_and_not_well() {
    const CPU: &str = "sys/devices/system/cpu";
    let governor = format!("{CPU}/cpufreq/policy0/scaling_governor");
    let cases: [(&str, &str, bool); 9] = [
        (&governor, "frequency governor", true),
        ("sys/fs/cgroup/jobs/cpu.max", "CPU quota", true),
        (
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "clock source",
            true,
        ),
        ("proc/self/status", "rights", false),
        ("proc/self/limits", "open files", false),
        ("proc/meminfo", "free memory", false),
        (
            "sys/devices/system/cpu/smt/control",
            "hardware threads",
            false,
        ),
        ("proc/sys/kernel/kptr_restrict", "kptr_restrict", false),
        (
            "sys/devices/system/cpu/intel_pstate/no_turbo",
            "turbo",
            false,
        ),
    ];
    for (file, name, is_doubtful) in cases {
        let (_root, host) = computer("unseen", &[(file, None)]);
        let findings = examine(&host);
        let finding = findings.iter().find(|one| one.name == name).expect(name);
        assert_eq!(finding.state, State::Unknown, "{finding:?}");
        assert_eq!(finding.is_doubtful(), is_doubtful, "{finding:?}");
        assert_eq!(finding.advice, None, "{finding:?}");
    }
    let (_root, mut host) = computer("unseen-load", &[]);
    host.environment.load_before = None;
    assert!(examine(&host).iter().any(Finding::is_doubtful));
    // A kernel without frequencies, and a hierarchy without a limit, are known.
    let (root, host) = computer(
        "none",
        &[("sys/fs/cgroup/cgroup.controllers", Some("cpu\n"))],
    );
    fs::remove_dir_all(root.0.join(CPU).join("cpufreq")).expect("a folder");
    fs::remove_file(root.0.join("sys/fs/cgroup/jobs/cpu.max")).expect("a file");
    let findings = examine(&host);
    assert!(!findings.iter().any(Finding::is_doubtful), "{findings:#?}");
}

#[test]
fn root_is_not_told_to_be_root() {
    let bound = "Uid:\t0\t0\t0\t0\nCapEff:\t0\n";
    let (_root, mut host) = computer("bound", &[("proc/self/status", Some(bound))]);
    host.tracepoints = Some(|| Err(io::ErrorKind::PermissionDenied.into()));
    let advice: Vec<String> = unwell(&host)
        .into_iter()
        .filter_map(|one| one.advice)
        .collect();
    assert!(advice.len() >= 2, "{advice:?}");
    for line in advice {
        assert!(
            !line.contains("as root") && !line.contains("sudo"),
            "{line}"
        );
    }
}

#[test]
fn nothing_known_is_doubtful_and_no_reason_to_panic() {
    let root = Root(env::temp_dir().join(format!("scalevm-doctor-empty-{}", std::process::id())));
    let host = Host::below(&root.0, Duration::ZERO);
    let findings = examine(&host);
    assert!(
        findings.iter().all(|one| one.state != State::Change),
        "{findings:#?}"
    );
    let unknown = findings.iter().filter(|one| one.state == State::Unknown);
    assert!(unknown.count() > 12, "{findings:#?}");
    let doubtful = findings.iter().filter(|one| one.is_doubtful());
    assert_eq!(doubtful.count(), super::DECISIVE.len());
}
