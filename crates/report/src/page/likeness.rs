//! The choice of profiles that may be compared.

use profile::{Profile, unlike};

/// The first and the last profile of each subject that has several: the same workload, place and
/// kind of tasks. Between other profiles a difference would mean nothing.
pub fn pairs<'a>(profiles: &[&'a Profile]) -> Vec<(&'a Profile, &'a Profile)> {
    let alike = |a: &Profile, b: &Profile| unlike(&a.subject, &b.subject).is_empty();
    let mut pairs = Vec::new();
    for (index, first) in profiles.iter().enumerate() {
        let is_first = !profiles[..index].iter().any(|one| alike(one, first));
        let last = profiles[index + 1..].iter().rfind(|one| alike(first, one));
        pairs.extend(last.filter(|_| is_first).map(|last| (*first, *last)));
    }
    pairs
}

/// The warning about profiles of one workload that are not compared; none if all are.
pub fn apart(profiles: &[&Profile]) -> Option<String> {
    let apart = |first: &Profile| {
        let last = profiles.iter().rfind(|one| {
            one.subject.workload == first.subject.workload
                && !unlike(&first.subject, &one.subject).is_empty()
        })?;
        Some(unlike(&first.subject, &last.subject))
    };
    let unlike = profiles.iter().find_map(|first| apart(first))?;
    Some(format!(
        "Profiles of unlike things are not compared: {}.",
        unlike.join("; ")
    ))
}
