//! Planted bugs are found, and the reproducers are short.

use oracle::check::{Divergence, play, shrink};
use oracle::generate::sequence;
use oracle::planted::{Bug, Planted};
use oracle::{Model, text};

/// The number of seeds within which each bug must be found.
const SEEDS: u64 = 1000;
/// The most steps of a reproducer. Five are enough for each: map, write, fork, the faulty call,
/// read.
const SHORT: usize = 6;

/// The first difference that random sequences show.
fn search(bug: Bug) -> Option<Divergence> {
    let mut planted = Planted::new(bug);
    (0..SEEDS).find_map(|seed| {
        let steps = sequence(seed, 100, Model::default(), &|_| true);
        let played = play(&steps, &mut [&mut planted]).expect("a model does not break");
        played.err()
    })
}

#[test]
fn each_is_found_and_made_short() {
    for bug in Bug::ALL {
        let found = search(bug).unwrap_or_else(|| panic!("{bug:?} was not found"));
        let mut planted = Planted::new(bug);
        let short = shrink(found, &mut [&mut planted]).expect("a model does not break");
        assert!(short.steps.len() <= SHORT, "{bug:?}:\n{short}");
        // The printed sequence shows the difference again.
        let again = text::parse(&short.to_string()).expect("it parses");
        let again = play(&again, &mut [&mut planted]).expect("a model does not break");
        assert_eq!(again, Err(short));
    }
}

#[test]
fn a_model_agrees_with_itself() {
    for seed in 0..100 {
        let steps = sequence(seed, 150, Model::default(), &|_| true);
        let played = play(&steps, &mut [&mut Model::default()]).expect("it does not break");
        let played = played.unwrap_or_else(|found| panic!("{found}"));
        assert_eq!(played.left_out, 0, "generated steps are defined");
        assert!(played.compared > 0);
    }
}
