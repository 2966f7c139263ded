//! `scalevm recording`: what is in a recording, or a part of it.

use crate::cli::RecordingArgs;
use crate::output::recording as output;
use crate::output::{file, format};
use bench::{Failure, Recorded};
use recording::{Error, Reader, Recording, Role, Summary};
use std::fs::File;
use std::ops::RangeInclusive;
use std::path::Path;

/// Shows the recording, or writes a part of it.
pub fn run(args: &RecordingArgs) -> Result<u8, Failure> {
    let path = &args.file;
    if let Some(to) = &args.output {
        write_part(args, to)?;
    } else if args.text {
        print_events(path).map_err(Failure::recording(path))?;
    } else {
        let shown = File::open(path).map_err(Error::Io).and_then(Summary::read);
        let (summary, recording, end) = shown.map_err(Failure::recording(path))?;
        if args.json {
            output::print_json(path, &summary, &recording, end);
        } else {
            format::choose(args.format.format);
            output::print(path, &summary, &recording, end);
        }
    }
    Ok(0)
}

/// Prints events as they are read.
fn print_events(path: &Path) -> Result<(), Error> {
    let mut reader = Reader::new(File::open(path)?)?;
    for event in reader.by_ref() {
        println!("{}", event?);
    }
    Recorded::warn_of(path, reader.finish().1);
    Ok(())
}

fn write_part(args: &RecordingArgs, to: &Path) -> Result<(), Failure> {
    if args.cut.is_none() && args.threads.is_empty() {
        return Err(Failure::Unavailable(
            "--output requires --cut or --threads".into(),
        ));
    }
    file::check(to)?;
    let mut part = Recorded::read(&args.file)?;
    if !args.threads.is_empty() {
        part = part.only(&threads(&part, &args.threads)?);
    }
    if let Some(cut) = &args.cut {
        part = self::cut(&part, cut)?;
    }
    let mut bytes = Vec::new();
    part.write(&mut bytes).map_err(Failure::recording(to))?;
    file::write(to, &bytes)
}

fn cut(recording: &Recording, cut: &RangeInclusive<f64>) -> Result<Recording, Failure> {
    let seconds = recording.nanoseconds as f64 / 1e9;
    if *cut.start() >= seconds {
        return Err(Failure::Unavailable(format!(
            "--cut from {} s on: the recording ends after {seconds:.3} s",
            cut.start()
        )));
    }
    let [from, to] = [cut.start(), cut.end()].map(|end| (end * 1e9) as u64);
    Ok(recording.cut(from, to))
}

/// The numbers of the threads that the user names.
fn threads(recording: &Recording, names: &[String]) -> Result<Vec<u32>, Failure> {
    let roles = recording.roles();
    let mut found = Vec::new();
    for name in names {
        let before = found.len();
        for role in &roles {
            let is_named = |thread: &&u32| {
                let own = &recording.threads[**thread as usize].name;
                name.parse() == Ok(**thread) || name == own || *name == role.name
            };
            found.extend(role.threads.iter().filter(is_named));
        }
        if found.len() == before {
            return Err(unknown(recording, &roles, name));
        }
    }
    Ok(found)
}

fn unknown(recording: &Recording, roles: &[Role], name: &str) -> Failure {
    let mut names = Vec::from_iter(roles.iter().map(|role| role.name.as_str()));
    names.sort();
    names.dedup();
    Failure::Unavailable(format!(
        "no thread is `{name}`; found 0 to {}, named {}",
        recording.threads.len().saturating_sub(1),
        names.join(", ")
    ))
}
