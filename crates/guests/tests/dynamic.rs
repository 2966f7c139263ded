//! Dynamic programs of this computer do the same in a guest that has their files and libraries.

use guests::boot::{self, Console};
use guests::{Ended, Files, Guest, Machine, Program, kernel};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(60);

const PROGRAMS: [&str; 14] = [
    "bash", "cat", "cut", "env", "grep", "head", "ls", "mktemp", "seq", "sort", "stat", "tail",
    "tr", "wc",
];

/// Files, pipes, substitutions of processes, variables, statuses, and a connection that is refused.
const SCRIPT: &str = r#"
    exec 2>&1
    cd "$(mktemp -d)"
    for number in 3 1 2; do echo "line $number" >"file$number"; done
    ls -l | tail -n +2 | cut -c 1-10
    ls | sort -r
    cat file* | sort | head -n 2
    sort -r --parallel=2 file* | tail -n 1
    wc -lc file*
    stat -c '%n %s %F' file1
    env -i A=b env
    env missing
    echo "status $?"
    seq 20000 | sort -n | tail -n 1
    while read -r line; do echo "read: $line"; done < <(seq 3 | tr 1 x)
    cat /proc/self/environ | tr '\0' '\n' | grep -v PWD= | sort
    (kill -TERM $BASHPID)
    echo "status $?"
    (echo >/dev/tcp/127.0.0.1/1) 2>&1 | grep -o 'Connection refused'
    ls missing
    exit 7"#;

/// The paths that `ldd` gives for a program: its libraries, and the dynamic linker.
fn libraries(program: &Path) -> Vec<String> {
    let output = Command::new("ldd").arg(program).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let words = text.split_ascii_whitespace();
    words
        .filter(|word| word.starts_with('/'))
        .map(str::to_owned)
        .collect()
}

/// A root directory with the programs in `/bin`, and the libraries where they are here.
fn root() -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a folder");
    let mut files = BTreeSet::new();
    for program in PROGRAMS {
        let program = format!("/bin/{program}");
        files.extend(libraries(Path::new(&program)));
        files.insert(program);
    }
    for file in files {
        let to = root.path().join(file.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
        fs::copy(&file, to).expect("a copy");
    }
    root
}

#[test]
fn programs_of_this_computer_do_the_same_in_a_guest() {
    let linker = libraries(Path::new("/bin/bash"));
    if !linker.iter().any(|path| path.contains("/ld-linux")) {
        eprintln!("skipped: /bin/bash is no dynamic program of glibc");
        return;
    }
    let mut program = Program::new("bash", ["bash", "-c", SCRIPT]);
    program.environment.push("LC_ALL=C".into());
    let mut here = Command::new("/bin/bash");
    here.args(["-c", SCRIPT]).env_clear().stdin(Stdio::null());
    here.current_dir("/");
    for variable in &program.environment {
        let variable = variable.to_str().expect("UTF-8");
        let (name, value) = variable.split_once('=').expect("a value");
        here.env(name, value);
    }
    let here = here.output().expect("bash");

    let guest = Guest::Ours {
        kernel: kernel::build().expect("the kernel"),
        words: vec!["strict".into()],
    };
    let machine = Machine {
        cpus: 2,
        ..Machine::default()
    };
    let root = root();
    let files = Files::of_root(root.path()).expect("readable");
    let (start, mut text) = (Instant::now(), Vec::new());
    let late = || start.elapsed() > LIMIT;
    let console = Console::Into(&mut text);
    let ended = boot::run(
        &guest,
        &machine,
        &files,
        &program,
        console,
        &late,
        &mut |_| (),
    );
    let text = String::from_utf8_lossy(&text).into_owned();
    // A missing call is named, and a program that goes on without it prints the same.
    let (named, text): (Vec<&str>, Vec<&str>) = text
        .split_inclusive('\n')
        .partition(|line| line.starts_with("unsupported system call "));
    assert_eq!(text.concat(), String::from_utf8_lossy(&here.stdout));
    let status = here.status.code().and_then(|code| u8::try_from(code).ok());
    assert_eq!(Some(ended.expect("QEMU starts")), status.map(Ended::Exit));
    let numbers = named.iter().filter(|line| !line.ends_with(")\n"));
    assert_eq!(numbers.count(), 0, "calls have names: {named:?}");
    assert!(named.concat().contains(" rseq (334)\n"), "{named:?}");
}
