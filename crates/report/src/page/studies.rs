//! Published and reproduced figures, by case study.

use crate::{Reproduction, Source};

/// A case study's figures, in the order of the files.
pub struct Study<'a> {
    /// Its number.
    pub document: &'a str,
    pub figures: Vec<&'a Reproduction>,
}

impl Study<'_> {
    /// The figures that test the simulation, or those that check the instrument.
    pub fn part(&self, checks: bool) -> impl Iterator<Item = &Reproduction> {
        let all = self.figures.iter().copied();
        all.filter(move |figure| figure.is_check() == checks)
    }
}

impl Reproduction {
    /// Returns true if the reproduced figure meets its aim.
    pub fn holds(&self) -> bool {
        self.verdict == "holds"
    }

    /// Returns true if it holds by construction: it checks the instrument, not the simulation.
    pub fn is_check(&self) -> bool {
        self.class == "check"
    }
}

/// The figures of all files, by case study.
pub fn studies(sources: &[Source]) -> Vec<Study<'_>> {
    let mut studies: Vec<Study> = Vec::new();
    for figure in sources.iter().flat_map(|source| &source.reproductions) {
        let known = studies
            .iter_mut()
            .find(|one| one.document == figure.document);
        match known {
            Some(study) => study.figures.push(figure),
            None => studies.push(Study {
                document: &figure.document,
                figures: vec![figure],
            }),
        }
    }
    studies.sort_by_key(|study| study.document);
    studies
}

/// The number of figures that hold: `3 of 4`.
pub fn held<'a>(figures: impl Iterator<Item = &'a Reproduction>) -> String {
    let all: Vec<bool> = figures.map(Reproduction::holds).collect();
    let held = all.iter().filter(|&&holds| holds).count();
    format!("{held} of {}", all.len())
}

/// The numbers that hold: of the simulated figures with a published number, of the rest, and of the
/// checks.
pub fn sentence(studies: &[Study]) -> Option<String> {
    let documents: Vec<&str> = studies.iter().map(|study| study.document).collect();
    let named = match documents.as_slice() {
        [] => return None,
        [one] => format!("case study {one}"),
        [rest @ .., last] => format!("case studies {} and {last}", rest.join(", ")),
    };
    let all = || {
        studies
            .iter()
            .flat_map(|study| study.figures.iter().copied())
    };
    let published = || all().filter(|one| !one.is_check() && one.aim == "seed");
    let other = || all().filter(|one| !one.is_check() && one.aim != "seed");
    let checks = || all().filter(|one| one.is_check());
    let parts = [
        (
            held(published()),
            "simulated figures with a published number",
        ),
        (held(other()), "statements and aims"),
        (held(checks()), "checks of the instrument"),
    ];
    let said = parts.into_iter().filter(|(held, _)| held != "0 of 0");
    let said = said.map(|(held, what)| format!("{held} {what}"));
    Some(format!(
        "{} hold ({named}).",
        Vec::from_iter(said).join(", ")
    ))
}
