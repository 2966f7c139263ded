//! Settings, one at a time.

use super::super::State;
use super::{assert_found, computer, unwell};

const CPU: &str = "sys/devices/system/cpu";
const CLOCK: &str = "sys/devices/system/clocksource/clocksource0";
const KERNEL: &str = "proc/sys/kernel";

/// Files that differ; the name, state and text of the finding, and the advice, or its beginning.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, State, &'a str, &'a str);

#[test]
fn each_setting_is_noticed_with_the_command_that_changes_it() {
    let no_rights = "Uid:\t1000\nCapEff:\t0\n";
    let cases: &[Case] = &[
        (
            &[("proc/cpuinfo", "flags : hypervisor\n")],
            "machine",
            State::Advice,
            "virtual",
            "measure on bare metal",
        ),
        (
            &[(".dockerenv", "")],
            "container",
            State::Advice,
            "/.dockerenv",
            "run outside",
        ),
        (
            &[("sys/fs/cgroup/jobs/cpu.max", "150000 100000\n")],
            "CPU quota",
            State::Change,
            "1.50 of 4 CPUs",
            "echo max > /sys/fs/cgroup/jobs/cpu.max",
        ),
        (
            &[
                (&format!("{CLOCK}/current_clocksource"), "hpet\n"),
                (&format!("{CLOCK}/available_clocksource"), "tsc hpet\n"),
            ],
            "clock source",
            State::Change,
            "hpet",
            "echo tsc > /sys/devices/system/clocksource/",
        ),
        (
            &[(&format!("{CLOCK}/current_clocksource"), "hpet\n")],
            "clock source",
            State::Change,
            "hpet",
            "boot",
        ),
        (
            &[(
                &format!("{CPU}/cpufreq/policy0/scaling_governor"),
                "powersave\n",
            )],
            "frequency governor",
            State::Change,
            "powersave",
            "cpupower frequency-set -g performance",
        ),
        (
            &[(&format!("{CPU}/intel_pstate/no_turbo"), "0\n")],
            "turbo",
            State::Advice,
            "on",
            "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo",
        ),
        (
            &[(&format!("{CPU}/offline"), "4-7\n")],
            "CPUs offline",
            State::Advice,
            "4-7",
            "chcpu -e 4-7",
        ),
        (
            &[(&format!("{CPU}/isolated"), "2-3\n")],
            "CPUs isolated",
            State::Advice,
            "2-3",
            "taskset -c 2-3 ",
        ),
        (
            &[(
                "sys/kernel/mm/transparent_hugepage/enabled",
                "[always] madvise never\n",
            )],
            "huge pages",
            State::Advice,
            "always",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        (
            &[(&format!("{KERNEL}/randomize_va_space"), "2\n")],
            "address randomisation",
            State::Advice,
            "2",
            "sysctl kernel.randomize_va_space=0",
        ),
        (
            &[(&format!("{KERNEL}/numa_balancing"), "1\n")],
            "NUMA balancing",
            State::Advice,
            "on",
            "sysctl kernel.numa_balancing=0",
        ),
        (
            &[("proc/meminfo", "MemAvailable: 300000 kB\n")],
            "free memory",
            State::Change,
            "292 MiB; page_fault1 on all CPUs touches 512 MiB",
            "measure with fewer tasks: `-t 2`",
        ),
        (
            &[("sys/fs/cgroup/jobs/memory.max", "134217728\n")],
            "free memory",
            State::Change,
            "128 MiB",
            "measure with fewer tasks: `-t 1`",
        ),
        (
            &[(
                "proc/self/limits",
                "Max processes  100  100\nMax open files  20000  20000\n",
            )],
            "processes",
            State::Advice,
            "100: enough for 46 of 2048",
            "ulimit -u 4104",
        ),
        (
            &[(
                "proc/self/limits",
                "Max processes  5000  5000\nMax open files  1024  4096\n",
            )],
            "open files",
            State::Advice,
            "1024: enough for 248 of 2048",
            "ulimit -n 8224",
        ),
        (
            &[("proc/self/status", no_rights)],
            "rights",
            State::Advice,
            "user 1000 without CAP_PERFMON",
            "sudo setcap cap_perfmon",
        ),
        (
            &[(&format!("{KERNEL}/kptr_restrict"), "1\n")],
            "kptr_restrict",
            State::Advice,
            "1",
            "sysctl kernel.kptr_restrict=0",
        ),
        (
            // Bound by the size of buffers, but not by the level.
            &[(&format!("{KERNEL}/perf_event_paranoid"), "2\n")],
            "perf_event_mlock_kb",
            State::Advice,
            "516",
            "sysctl kernel.perf_event_mlock_kb=8192",
        ),
    ];
    for (number, (files, name, state, found, advice)) in cases.iter().enumerate() {
        let files: Vec<_> = files
            .iter()
            .map(|&(path, text)| (path, Some(text)))
            .collect();
        let (_root, host) = computer(&format!("case-{number}"), &files);
        assert_found(&unwell(&host), name, *state, found, advice);
    }
}
