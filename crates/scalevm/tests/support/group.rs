//! Control groups for programs of tests.

use std::fs;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// A control group of this test's own; none, said so, where none can be made.
pub struct Group(PathBuf);

impl Group {
    pub fn new(name: &str) -> Option<Self> {
        let name = format!("scalevm-{name}-{}", std::process::id());
        for mount in ["", "unified", "freezer", "pids"] {
            let path = PathBuf::from("/sys/fs/cgroup").join(mount).join(&name);
            if fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Group(path);
            // A plain file system takes a folder too.
            if group.0.join("cgroup.procs").is_file() && fs::create_dir(group.inner()).is_ok() {
                return Some(group);
            }
        }
        eprintln!("skipped: no control group can be made here");
        None
    }

    fn inner(&self) -> PathBuf {
        self.0.join("inner")
    }

    /// Its path below the mount.
    pub fn name(&self) -> String {
        let name = self.0.strip_prefix("/sys/fs/cgroup").expect("below it");
        name.display().to_string()
    }

    /// Moves a process into the group below it.
    pub fn take(&self, pid: u32) {
        fs::write(self.inner().join("cgroup.procs"), pid.to_string()).expect("it joins");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Processes take a moment to leave.
        (0..100).any(|_| {
            sleep(Duration::from_millis(20));
            let _ = fs::remove_dir(self.inner());
            fs::remove_dir(&self.0).is_ok()
        });
    }
}
