//! Where /proc, /sys or the list of CPUs is missing or not this process's own: there is a result of
//! what was recorded, or an error that names the cause; never a verdict on nothing. Needs root;
//! without it the tests say that they are skipped.

mod support;

use std::process::Command;
use support::command::{exits, scalevm, text};
use support::scratch::Scratch;

/// A short profile, which keeps a task busy.
const PROFILE: &str = "profile mmap1 --threads --on os -s 2 --warmup 0 --duration 0.4";

/// The command in name spaces of its own, after `before` has been run in them; `under` another
/// program if that is not empty. None where there cannot be any name spaces.
fn apart(spaces: &str, before: &str, under: &str, arguments: &str) -> Option<Command> {
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(spaces.split_whitespace());
        command.args(["sh", "-c", script]);
        // Profiles are written where the command runs.
        command.current_dir(env!("CARGO_TARGET_TMPDIR"));
        command
    };
    let tried = unshare(&format!("{before} true")).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no name spaces here");
        return None;
    }
    let program = scalevm("");
    let program = program.get_program().to_string_lossy();
    Some(unshare(&format!(
        "{before} exec {under} {program} {arguments}"
    )))
}

/// Returns true if everything can be recorded here.
fn sees_all() -> bool {
    let everything = perf::support::everything();
    if !everything {
        eprintln!("skipped: not everything can be recorded here");
    }
    everything
}

#[test]
fn a_proc_of_others_or_none_is_an_error_that_names_it() {
    for (spaces, before, why) in [
        ("-p -f", "", "/proc is of another PID namespace"),
        ("-m", "umount -l /proc;", "/proc/self: No such file"),
    ] {
        let Some(mut command) = apart(spaces, before, "", &format!("{PROFILE} -t 2")) else {
            return;
        };
        let output = command.output().expect("it runs");
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_ne!(output.status.code(), Some(0), "{spaces}: {stdout}");
        assert!(
            stderr.contains("recording needs /proc: ") && stderr.contains(why),
            "{spaces}: {stderr}"
        );
        assert!(!stdout.contains("bottleneck"), "{spaces}: {stdout}");
    }
}

#[test]
fn a_list_of_cpus_hides_no_task() {
    if !sees_all() {
        return;
    }
    let place = Scratch::folder("hidden-cpus");
    let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
    for (name, list) in [
        ("hidden", "0"),
        ("hole", "0,7"),
        ("backwards", "3-0"),
        ("word", "none"),
        ("empty", ""),
        ("huge", "0-4294967295"),
    ] {
        let list = place.write(name, &format!("{list}\n"));
        let mount = format!("mount --bind {list} /sys/devices/system/cpu/online;");
        let pinned = format!("taskset -c {last}");
        let Some(mut command) = apart("-m", &mount, &pinned, &format!("{PROFILE} -t 1")) else {
            return;
        };
        let (stdout, _) = exits(0, &mut command);
        for nothing in [
            "0 % is busy, 0 % waits",
            " 0 % of task time is work",
            "bottleneck: not known",
        ] {
            assert!(!stdout.contains(nothing), "{name}: {stdout}");
        }
    }
}

#[test]
fn without_sys_the_tasks_are_recorded_all_the_same() {
    if !sees_all() {
        return;
    }
    let Some(mut command) = apart("-m", "umount -l /sys;", "", &format!("{PROFILE} -t 1")) else {
        return;
    };
    let (stdout, _) = exits(0, &mut command);
    assert!(
        stdout.contains("bottleneck: ") && !stdout.contains("bottleneck: not known"),
        "{stdout}"
    );
}

#[test]
fn the_doctor_does_not_take_unknown_for_good() {
    for (before, unknown) in [
        ("umount -l /proc;", ["load of others", "rights"]),
        ("umount -l /sys;", ["clock source", "frequency governor"]),
    ] {
        let Some(mut command) = apart("-m", before, "", "doctor") else {
            return;
        };
        let (stdout, _) = exits(3, &mut command);
        for name in unknown {
            let line = stdout
                .lines()
                .find(|line| line.get(9..).is_some_and(|rest| rest.starts_with(name)));
            let line = line.unwrap_or_else(|| panic!("{name}: {stdout}"));
            assert!(line.starts_with("unknown "), "{line}");
        }
        assert!(
            !stdout.contains("This computer is fit for measurements"),
            "{stdout}"
        );
        assert!(
            !stdout.contains("run as root") && !stdout.contains("setcap"),
            "{stdout}"
        );
    }
}
