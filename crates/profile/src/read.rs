//! Reading profiles back. The input is not trusted.

use crate::Profile;
use stats::{InputError, for_each_line, from_json};
use std::io::BufRead;

/// Reads the profiles from `reader`; other JSON lines are skipped. Errors name `file`. The first
/// damaged line is an error.
pub fn parse(file: &str, reader: impl BufRead) -> Result<Vec<Profile>, InputError> {
    #[derive(serde::Deserialize)]
    struct Line {
        kind: String,
    }
    let mut profiles = Vec::new();
    for_each_line(file, reader, |line| {
        if line.trim().is_empty() {
            return Ok(());
        }
        if from_json::<Line>(line)?.kind == "profile" {
            let profile: Profile = from_json(line)?;
            check(&profile)?;
            profiles.push(profile);
        }
        Ok(())
    })?;
    Ok(profiles)
}

/// Refuses values that no run can give.
fn check(profile: &Profile) -> Result<(), String> {
    let positive = [
        ("seconds", profile.seconds),
        ("tasks", f64::from(profile.subject.tasks)),
    ];
    for (name, value) in positive {
        if value <= 0.0 {
            return Err(format!("`{name}` is {value}"));
        }
    }
    let stacks = profile.busy.iter().chain(profile.waits.iter());
    let locks = profile.locks.iter();
    let locks = locks.flat_map(|lock| [(&*lock.name, lock.wait), (&lock.name, lock.spin)]);
    let holders = profile.holders.iter();
    let holders = holders.filter_map(|one| Some((&*one.function, one.times?.mean)));
    let parts = profile.parts.values().flatten();
    let parts = parts.flat_map(|part| [part.busy, part.waits, part.idle].map(|s| (&*part.name, s)));
    let times = stacks.chain(locks).chain(holders).chain(parts);
    for (what, seconds) in times {
        if seconds < 0.0 {
            return Err(format!("{what} took {seconds} seconds"));
        }
    }
    Ok(())
}
