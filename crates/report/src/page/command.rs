//! How to take the results again.

use super::name::subjects;
use crate::Source;
use stats::record::{Mode, Subject};

/// The command lines that gave the results, ready for a shell. Simulated results do not
/// carry theirs; one that gives the same is made up from what they are.
pub fn commands(sources: &[Source]) -> Vec<String> {
    let recorded = sources.iter().flat_map(Source::machines);
    let recorded = recorded.map(|machine| line(&machine.arguments));
    let simulated = sources.iter().flat_map(subjects).filter_map(simulated);
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

/// As a shell reads it back; what can not be harmful stays as it is.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !argument.is_empty() && argument.chars().all(plain) {
        true => argument.to_owned(),
        false => format!("'{}'", argument.replace('\'', r"'\''")),
    }
}

fn simulated(subject: &Subject) -> Option<String> {
    let machine = subject.profile.as_ref()?;
    let mut arguments = vec!["scalevm".into(), "run".into(), subject.workload.clone()];
    arguments.extend(["-t".into(), subject.tasks.to_string()]);
    if subject.mode == Mode::Threads {
        arguments.push("--threads".into());
    }
    arguments.extend(["--machine".into(), machine.clone()]);
    let options = [
        ("--topology", subject.topology.clone()),
        ("--vm", subject.vm.clone()),
        ("--seed", subject.seed.map(|seed| seed.to_string())),
    ];
    for (name, value) in options {
        arguments.extend(value.into_iter().flat_map(|value| [name.into(), value]));
    }
    Some(line(&arguments))
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
