//! Sequences that state what calls mean, and those in which systems once differed: each is defined
//! to its end, and the kernel of this computer agrees with the model. (The tests of `checks` and
//! of the command play them on the VM, simulated and on threads.)

use crate::hostile;

use oracle::check::{model_for, play};
use oracle::{Halfway, Linux, Model, Step, text};
use std::fs;
use std::path::Path;

/// All sequences, by name.
fn sequences() -> Vec<(String, Vec<Step>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sequences");
    let files = fs::read_dir(folder).expect("sequences");
    let read = |file: fs::DirEntry| {
        let name = file.file_name().display().to_string();
        let steps = fs::read_to_string(file.path()).expect("a sequence");
        let steps = text::parse(&steps).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, steps)
    };
    files.map(|file| read(file.expect("a file"))).collect()
}

#[test]
fn the_kernel_does_what_the_model_says() {
    let mut linux = Linux::new().expect("processes to play with");
    let sequences = sequences();
    assert!(sequences.len() >= 32, "{}", sequences.len());
    for (name, steps) in sequences {
        let played = play(&steps, &mut [&mut linux]).expect("it does not break");
        let played = played.unwrap_or_else(|found| panic!("{name}:\n{found}"));
        assert_eq!(played.left_out, 0, "{name}");
    }
}

#[test]
fn all_is_defined_beside_a_system_that_undoes() {
    for (name, steps) in sequences() {
        let mut model = model_for(&[
            &mut Model::default(),
            &mut Model::new(Some(Halfway::Undone)),
        ]);
        for step in steps {
            let judged = model.judge(&step);
            assert!(judged.is_ok(), "{name}: `{step}`: {judged:?}");
        }
    }
}

/// Scripts with hostile numbers.
#[test]
fn whatever_the_numbers_are() {
    let mut linux = Linux::new().expect("processes to play with");
    let scripts = hostile::scripts();
    let mut compared = 0;
    for seed in 0..1500 {
        let Ok(steps) = text::parse(&hostile::mutated(seed, &scripts)) else {
            continue;
        };
        let played = play(&steps, &mut [&mut linux]).expect("it does not break");
        let played = played.unwrap_or_else(|found| panic!("seed {seed}:\n{found}"));
        compared += played.compared;
        all_is_answered(&steps);
    }
    assert!(compared > 5_000, "{compared}");
}

/// The model also answers where a system undoes failed calls.
fn all_is_answered(steps: &[Step]) {
    let mut model = model_for(&[
        &mut Model::default(),
        &mut Model::new(Some(Halfway::Undone)),
    ]);
    for step in steps {
        let _ = model.judge(step);
    }
}
