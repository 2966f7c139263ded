//! Plays sequences on the kernel on which it runs: `play KERNEL SEEDS FILE...`. KERNEL is `linux`
//! or `scalevm`; SEEDS says how many generated sequences follow those of the files.
//!
//! It prints each difference from the model, and how many steps it has compared. It ends with 1 if
//! there was a difference.

use oracle::check::{play, sequence_for, shrink};
use oracle::{Halfway, Linux, Model, Step, System, text};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

/// The length of a generated sequence.
const STEPS: usize = 100;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [kernel, seeds, files @ ..] = &*words else {
        return Err("usage: play KERNEL SEEDS FILE...".into());
    };
    let (mut linux, mut scalevm, mut undoes);
    let kernel: &mut [&mut dyn System] = match &**kernel {
        "linux" => {
            linux = Linux::new()?;
            &mut [&mut linux]
        }
        // Some of its calls that fail half-way undo their changes, and some do not. A system that
        // undoes them leaves both out.
        "scalevm" => {
            scalevm = Linux::with_files_in(Path::new("/tmp"))?;
            undoes = Model::new(Some(Halfway::Undone));
            &mut [&mut scalevm, &mut undoes]
        }
        other => return Err(format!("{other} is not a kernel: linux, scalevm").into()),
    };
    let mut total = Total::default();
    for file in files {
        let steps = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let steps = text::parse(&steps).map_err(|error| format!("{file}: {error}"))?;
        total.add(file, &steps, kernel)?;
    }
    for seed in 0..seeds.parse()? {
        let steps = sequence_for(seed, STEPS, kernel);
        total.add(&format!("seed {seed}"), &steps, kernel)?;
    }
    let Total {
        sequences,
        compared,
        different,
    } = total;
    println!("{sequences} sequences, {compared} steps, {different} different");
    Ok(ExitCode::from(u8::from(different > 0)))
}

#[derive(Default)]
struct Total {
    sequences: u64,
    compared: u64,
    /// Sequences in which the kernel differs from the model, or that it does not support.
    different: u64,
}

impl Total {
    fn add(
        &mut self,
        name: &str,
        steps: &[Step],
        kernel: &mut [&mut dyn System],
    ) -> Result<(), Box<dyn Error>> {
        self.sequences += 1;
        match play(steps, kernel)? {
            Ok(played) if played.left_out == 0 => self.compared += played.compared,
            Ok(played) => {
                self.different += 1;
                println!("{name}: {} steps are not supported", played.left_out);
            }
            Err(found) => {
                self.different += 1;
                println!("{name}:\n{}", shrink(found, kernel)?);
            }
        }
        Ok(())
    }
}
