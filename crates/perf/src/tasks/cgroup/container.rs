//! Numbers of containers, from the programs that run them.

use std::process::Command;

/// The programs that know containers by their names.
const RUNTIMES: [&str; 3] = ["docker", "podman", "nerdctl"];

/// The number of the container `name`; none if no program here knows it.
pub(super) fn number(name: &str) -> Option<String> {
    RUNTIMES.iter().find_map(|runtime| {
        let mut command = Command::new(runtime);
        command.args(["inspect", "--format", "{{.Id}}", "--", name]);
        let output = command
            .output()
            .ok()
            .filter(|output| output.status.success())?;
        let number = String::from_utf8(output.stdout).ok()?;
        let number = number.trim();
        (!number.is_empty()).then(|| number.to_owned())
    })
}
