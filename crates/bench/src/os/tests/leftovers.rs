//! Workloads that end leave nothing behind.

use super::super::system::{Linux, Prepared};
use crate::harness::{Mode, Plan};
use crate::tasks::Area;
use std::fs;
use std::path::Path;
use workloads::{Error, Workload};

const ITERATIONS: u64 = 20;

/// Open descriptors and children of this process, which has no other threads.
fn held() -> (usize, bool) {
    let descriptors = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    // SAFETY: no other code in this process waits for children; the status pointer may be null.
    let child = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    (descriptors, child != -1)
}

/// Runs `workload` and examines its leftovers; returns an exit code: 0 if all is well.
fn run(workload: &'static Workload, mode: Mode, directory: &Path) -> u8 {
    let plan = Plan {
        workload: workload.into(),
        tasks: 1,
        mode,
        count: Some(ITERATIONS),
    };
    // Children count, too.
    let Ok(area) = Area::new(&plan, |_| [0; 2]) else {
        return 1;
    };
    let before = held();
    let Ok(prepared) = Prepared::new(&plan, directory) else {
        return 1;
    };
    let mut system = Linux::new(directory.into(), mode, prepared);
    let outcome = workload.run(&mut system, &area.slots()[0].counter);
    drop(system);
    match (outcome, held() == before) {
        (Ok(()), true) => 0,
        (Ok(()), false) => 2,
        (Err(Error::Answer { .. }), _) => 3,
        (Err(_), _) => 4,
    }
}

#[test]
fn no_descriptor_child_or_file_is_left() {
    let directory = std::env::temp_dir().join(format!("scalevm-left-{}", std::process::id()));
    fs::create_dir(&directory).expect("a directory");
    for workload in super::runnable().filter(|one| !one.needs.features.is_empty()) {
        for mode in [Mode::Processes, Mode::Threads] {
            // In a child: it has one thread, so all its resources are the workload's.
            // SAFETY: libc's `fork` takes care of malloc's locks; the child ends in
            // `_exit`, and the parent waits for a child of its own.
            let status = unsafe {
                let pid = libc::fork();
                if pid == 0 {
                    libc::_exit(run(workload, mode, &directory).into());
                }
                let mut status = 0;
                assert!(pid > 0 && libc::waitpid(pid, &mut status, 0) == pid);
                status
            };
            assert_eq!(status, 0, "{} {mode:?}: {status:#x}", workload.name);
            let files = fs::read_dir(&directory).expect("a directory");
            assert_eq!(files.count(), 0, "{} {mode:?} left a file", workload.name);
        }
    }
    fs::remove_dir(&directory).expect("empty");
}
