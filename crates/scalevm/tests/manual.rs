//! Manual pages and completions have every command.

mod support;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use support::command::{exits, failure, output, scalevm, success};
use support::scratch::Scratch;

/// The commands, as `--help` shows them.
fn commands() -> Vec<String> {
    let help = success("--help");
    let list = help.lines().take_while(|line| *line != "Options:");
    let names = list.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn there_is_a_page_for_each_command() {
    let folder = Scratch::new("man");
    let (stdout, _) = exits(0, scalevm("man --out").arg(folder.path()));
    assert_eq!(stdout, "");
    let commands = commands();
    assert!(
        commands.len() >= 11 && commands.contains(&"sweep".to_owned()),
        "{commands:?}"
    );
    let nested = ["check-conflicts", "check-races"].map(str::to_owned);
    for command in commands.iter().chain(&nested) {
        let page = fs::read_to_string(folder.0.join(format!("scalevm-{command}.1")));
        let page = page.unwrap_or_else(|error| panic!("{command}: {error}"));
        assert!(
            page.contains(&format!(".TH scalevm-{command} 1 ")),
            "{page}"
        );
        for section in ["SYNOPSIS", "OPTIONS", "EXTRA"] {
            assert!(
                page.contains(&format!(".SH {section}\n")),
                "no {section}: {page}"
            );
        }
        let example = format!("\n    scalevm {}", command.replace("check-", "check "));
        assert!(page.replace('\\', "").contains(&example), "{page}");
        assert!(page.contains("\nExit codes: "), "{page}");
    }
    assert!(!folder.0.join("scalevm-host.1").exists(), "nobody calls it");
    let main = fs::read_to_string(folder.0.join("scalevm.1")).expect("the main page");
    assert_eq!(main, success("man"));
    for command in &commands {
        let name = format!("scalevm\\-{}(1)", command.replace('-', "\\-"));
        assert!(main.contains(&name), "no {name}: {main}");
    }
    assert!(
        main.contains(".TH scalevm 1 ") && main.contains("inconclusive; doctor"),
        "{main}"
    );
}

#[test]
fn pages_that_can_not_be_written_are_told() {
    let errors = failure("man --out /dev/null/pages", 2);
    assert!(errors.starts_with("scalevm: /dev/null/pages: "), "{errors}");
}

#[test]
fn each_shell_completes_each_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = success(&format!("completions {shell}"));
        for command in commands() {
            assert!(script.contains(&command), "{shell} lacks {command}");
        }
        assert!(script.contains("warmup"), "{shell} lacks --warmup");
        let apart = |c: char| !c.is_ascii_alphanumeric() && c != '-';
        assert!(
            !script.split(apart).any(|word| word == "host"),
            "{shell} offers `host`"
        );
        // The others complete no values.
        let values = ["bash", "zsh", "fish"].contains(&shell);
        assert_eq!(script.contains("context_switch1"), values, "{shell}");
    }
    assert_eq!(output("completions tcsh").status.code(), Some(2));
}

/// A shell's check of the script, if the shell is installed.
fn check(shell: &str, arguments: &[&str]) {
    let mut command = Command::new(shell);
    command.args(arguments).stdin(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("no {shell} here");
        return;
    };
    let script = success(&format!("completions {shell}"));
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(script.as_bytes()).expect("read to the end");
    drop(stdin);
    assert!(child.wait().expect("the end").success(), "{shell}");
}

#[test]
fn shells_can_read_their_scripts() {
    check("bash", &["-n"]);
    check("zsh", &["-n"]);
    check("fish", &["--no-execute"]);
}
