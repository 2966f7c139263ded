//! Records the memory operations of a command, and prints them.

use perf::operations::{Operations, Subject};
use std::time::Duration;

fn main() {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().expect("a command");
    let underway = Operations::open(false).expect("opens");
    let underway = underway.start(Subject::Started).expect("starts");
    let status = std::process::Command::new(program).args(words).status();
    std::thread::sleep(Duration::from_millis(100));
    let recording = underway.finish().expect("finishes");
    for event in &recording.events {
        println!("{event:?}");
    }
    for (number, file) in recording.files.iter().enumerate() {
        println!("{number} {file:?}");
    }
    println!(
        "{:?} {:?} {:?}",
        recording.processes, recording.threads, recording.environment
    );
    eprintln!(
        "{status:?} {} {:?} {:?}",
        recording.events.len(),
        recording.lost,
        recording.cost
    );
}
