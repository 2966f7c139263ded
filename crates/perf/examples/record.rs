//! Records a process for a few seconds and prints its waits.
//! `cargo run --release -p scalevm-perf --example record -- PID [SECONDS]`

use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let pid = arguments
        .next()
        .ok_or("usage: record PID [SECONDS]")?
        .parse()?;
    let seconds = arguments.next().map_or(Ok(1.0), |text| text.parse())?;
    let mut recorder = perf::Recorder::open(&perf::Options::default(), &[pid])?;
    recorder.start()?;
    std::thread::sleep(Duration::from_secs_f64(seconds));
    let recording = recorder.finish()?;
    for lock in recording.locks(recording.span().as_secs_f64()) {
        println!(
            "{:9.4} s waited {:9.4} s spun {:8} × {} ({}) by {}",
            lock.wait,
            lock.spin,
            lock.contentions,
            lock.name,
            lock.kind.name(),
            lock.caller
        );
    }
    for note in recording.notes() {
        println!("note: {note}");
    }
    print!(
        "busy:\n{}waiting:\n{}",
        recording.busy().folded(),
        recording.waiting().folded()
    );
    Ok(())
}
