//! The seeds' figures and ours, by seed.

use crate::{Reproduction, Source};

/// One seed's figures, in the order of the files.
pub struct Seed<'a> {
    /// Its number.
    pub document: &'a str,
    pub figures: Vec<&'a Reproduction>,
}

impl Seed<'_> {
    /// How many of its figures hold.
    pub fn held(&self) -> usize {
        self.figures.iter().filter(|one| one.holds()).count()
    }
}

impl Reproduction {
    /// Whether ours is as it should be.
    pub fn holds(&self) -> bool {
        self.verdict == "holds"
    }
}

/// The figures of all files, seed by seed.
pub fn seeds(sources: &[Source]) -> Vec<Seed<'_>> {
    let mut seeds: Vec<Seed> = Vec::new();
    for figure in sources.iter().flat_map(|source| &source.reproductions) {
        let known = seeds.iter_mut().find(|one| one.document == figure.document);
        match known {
            Some(seed) => seed.figures.push(figure),
            None => seeds.push(Seed {
                document: &figure.document,
                figures: vec![figure],
            }),
        }
    }
    seeds.sort_by_key(|seed| seed.document);
    seeds
}

/// How many hold.
pub fn sentence(seeds: &[Seed]) -> Option<String> {
    let all: usize = seeds.iter().map(|seed| seed.figures.len()).sum();
    let held: usize = seeds.iter().map(Seed::held).sum();
    let documents: Vec<&str> = seeds.iter().map(|seed| seed.document).collect();
    let named = match documents.as_slice() {
        [] => return None,
        [one] => format!("seed {one}"),
        [rest @ .., last] => format!("seeds {} and {last}", rest.join(", ")),
    };
    Some(format!("{held} of {all} figures of {named} hold."))
}
