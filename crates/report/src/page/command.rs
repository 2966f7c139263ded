//! How to repeat the measurement.

use super::name::subjects;
use crate::Source;
use stats::record::{Mode, Subject};

/// The command lines that produced the results, quoted for a shell. Simulated results do not record
/// theirs; an equivalent command is built from their fields.
pub fn commands(sources: &[Source]) -> Vec<String> {
    let recorded = sources.iter().flat_map(Source::machines);
    let recorded = recorded.map(|machine| line(&machine.arguments));
    let simulated = simulated(sources);
    let mut all: Vec<String> = Vec::new();
    for command in recorded.chain(simulated).filter(|one| !one.is_empty()) {
        if !all.contains(&command) {
            all.push(command);
        }
    }
    all
}

fn line(arguments: &[String]) -> String {
    let quoted: Vec<String> = arguments.iter().map(|one| quoted(one)).collect();
    quoted.join(" ")
}

/// Quoted so that a shell reads it back; harmless characters need no quotes.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

/// A simulated machine, a workload, and every system that ran it: one sweep.
struct Sweep<'a> {
    first: &'a Subject,
    tasks: Vec<u32>,
    systems: Vec<&'a str>,
}

fn simulated(sources: &[Source]) -> Vec<String> {
    let mut sweeps: Vec<Sweep<'_>> = Vec::new();
    for subject in sources.iter().flat_map(subjects) {
        if subject.profile.is_none() {
            continue;
        }
        let at = sweeps
            .iter()
            .position(|one| same_machine(one.first, subject));
        let at = at.unwrap_or_else(|| {
            sweeps.push(Sweep {
                first: subject,
                tasks: Vec::new(),
                systems: Vec::new(),
            });
            sweeps.len() - 1
        });
        let Sweep { tasks, systems, .. } = &mut sweeps[at];
        tasks.push(subject.tasks);
        let system = subject.vm.as_deref();
        systems.extend(system.filter(|name| !systems.contains(name)));
    }
    sweeps.into_iter().map(Sweep::line).collect()
}

fn same_machine(a: &Subject, b: &Subject) -> bool {
    (&a.workload, a.mode, &a.profile, &a.topology, a.seed)
        == (&b.workload, b.mode, &b.profile, &b.topology, b.seed)
}

impl Sweep<'_> {
    fn line(mut self) -> String {
        self.tasks.sort_unstable();
        self.tasks.dedup();
        let tasks: Vec<String> = self.tasks.iter().map(u32::to_string).collect();
        let Subject { workload, mode, .. } = self.first;
        let mut arguments: Vec<String> = ["scalevm", "sweep", workload].map(str::to_owned).into();
        if *mode == Mode::Threads {
            arguments.push("--threads".into());
        }
        let options = [
            ("--machine", self.first.profile.clone()),
            ("--topology", self.first.topology.clone()),
            ("--vm", Some(self.systems.join(","))),
            ("--cpus", Some(tasks.join(","))),
            ("--seed", self.first.seed.map(|seed| seed.to_string())),
        ];
        for (name, value) in options {
            arguments.extend(value.into_iter().flat_map(|value| [name.into(), value]));
        }
        line(&arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        for (argument, wanted) in [
            ("--vm=a,b", "--vm=a,b"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's; rm", r"'it'\''s; rm'"),
            ("$HOME", "'$HOME'"),
        ] {
            assert_eq!(quoted(argument), wanted);
        }
    }
}
