//! The files of a profile: flame graphs, folded stacks, those for other viewers, itself as JSON.

use crate::output::file;
use bench::Failure;
use profile::{Difference, Profile, firefox, flame, pprof, speedscope, unlike};
use std::fs;
use std::io;
use std::path::Path;

/// The name of the profile itself.
const ITSELF: &str = "profile.jsonl";

/// The profile as one line of JSON.
pub fn line(profile: &Profile) -> String {
    serde_json::to_string(profile).expect("numbers and strings always serialize")
}

/// The difference of two profiles as one line of JSON.
pub fn difference_line(before: &Profile, after: &Profile, difference: &Difference) -> String {
    serde_json::json!({
        "kind": "difference",
        "before": before.subject,
        "after": after.subject,
        "rate_before": before.rate,
        "rate_after": after.rate,
        "bottleneck_before": before.bottleneck,
        "bottleneck_after": after.bottleneck,
        "sentence": difference.sentence,
        "unlike": unlike(&before.subject, &after.subject),
        "locks": difference.changes,
    })
    .to_string()
}

/// The subject of a profile, as a title.
pub fn title(profile: &Profile) -> String {
    let what = &profile.subject;
    if what.already_ran() {
        return what.workload.clone();
    }
    let vm = what
        .vm
        .as_ref()
        .map_or(String::new(), |vm| format!(" ({vm})"));
    let mode = what.mode.name();
    format!(
        "{}, {} {mode} on {}{vm}",
        what.workload, what.tasks, what.on
    )
}

/// Writes all files into `directory`.
pub fn write(profile: &Profile, directory: &Path) -> Result<(), Failure> {
    let title = title(profile);
    let stacks = [("busy", &profile.busy), ("waits", &profile.waits)];
    for (name, stacks) in stacks {
        let subtitle = format!("{name} ({}): {}", profile.clock, profile.bottleneck);
        let svg = flame::svg(stacks, &title, &subtitle);
        put(directory, &format!("{name}.svg"), svg)?;
        put(directory, &format!("{name}.folded"), Ok(stacks.folded()))?;
    }
    let scope = speedscope::file(profile, &title).to_string();
    put(directory, "speedscope.json", Ok(scope))?;
    let firefox = firefox::file(profile, &title).map_err(io::Error::from);
    let firefox = firefox.map(|file| file.to_string());
    put(directory, "firefox.json", firefox)?;
    put(directory, "profile.pb.gz", pprof::file(profile, &title))?;
    put(directory, ITSELF, Ok(line(profile) + "\n"))
}

/// Writes one file.
pub fn put(
    directory: &Path,
    name: &str,
    content: io::Result<impl AsRef<[u8]>>,
) -> Result<(), Failure> {
    let path = directory.join(name);
    let content = content.map_err(Failure::file(&path))?;
    file::write(&path, content.as_ref())
}

/// The profile in a directory that [`write()`] made, the last one in a file of JSON, or that of a
/// recording of the program perf.
pub fn read(path: &Path) -> Result<Profile, Failure> {
    let file = if path.is_dir() {
        path.join(ITSELF)
    } else {
        path.to_owned()
    };
    let name = file.to_string_lossy();
    let unreadable = |source| stats::InputError::Unreadable {
        file: name.to_string(),
        source,
    };
    let bytes = fs::read(&file).map_err(unreadable)?;
    if let Some(profile) = perf::script::parse(&name, &bytes)? {
        return Ok(profile);
    }
    let profile = profile::parse(&name, &bytes[..])?.pop();
    profile.ok_or_else(|| {
        Failure::Input(stats::InputError::Whole {
            file: name.into_owned(),
            reason: "no profile".into(),
        })
    })
}
