//! What systems once differed in: each sequence is defined to its end, and the kernel of this
//! computer does what the model says. (The command's tests play them on the VM.)

use oracle::check::{model_for, play};
use oracle::{Broken, Halfway, Linux, Model, Outcome, Step, System, text};
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
    assert!(sequences.len() >= 13, "{}", sequences.len());
    for (name, steps) in sequences {
        let played = play(&steps, &mut [&mut linux]).expect("it does not break");
        let played = played.unwrap_or_else(|found| panic!("{name}:\n{found}"));
        assert_eq!(played.left_out, 0, "{name}");
    }
}

/// A system that undoes what fails half-way, and says nothing.
struct Undoing;

impl System for Undoing {
    fn name(&self) -> &str {
        "undoing"
    }

    fn halfway(&self) -> Halfway {
        Halfway::Undone
    }

    fn reset(&mut self) -> Result<(), Broken> {
        Ok(())
    }

    fn perform(&mut self, _: &Step) -> Result<Outcome, Broken> {
        Ok(Outcome::Done)
    }
}

#[test]
fn all_is_defined_beside_who_undoes() {
    for (name, steps) in sequences() {
        let mut model = model_for(&[&mut Model::default(), &mut Undoing]);
        for step in steps {
            let judged = model.judge(&step);
            assert!(judged.is_ok(), "{name}: `{step}`: {judged:?}");
        }
    }
}
