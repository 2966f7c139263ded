//! Stacks in the file format of speedscope (<https://www.speedscope.app>), which other viewers read
//! too.

use crate::{Profile, Stacks};
use serde_json::{Value, json};
use std::collections::HashMap;

/// The busy and the waiting stacks, as two profiles of one file.
pub fn file(profile: &Profile, name: &str) -> Value {
    let mut frames = Frames::default();
    let profiles = [("busy", &profile.busy), ("waiting", &profile.waits)];
    let profiles: Vec<Value> = profiles
        .iter()
        .map(|(what, stacks)| frames.sampled(&format!("{name}: {what}"), stacks))
        .collect();
    json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "name": name,
        "exporter": "scalevm",
        "activeProfileIndex": 0,
        "shared": {
            "frames": frames.names.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
        },
        "profiles": profiles,
    })
}

/// The names of all frames, and their numbers.
#[derive(Default)]
struct Frames {
    names: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Frames {
    fn number(&mut self, name: &str) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len();
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn sampled(&mut self, name: &str, stacks: &Stacks) -> Value {
        let samples: Vec<Vec<usize>> = stacks
            .iter()
            .map(|(stack, _)| stack.split(';').map(|frame| self.number(frame)).collect())
            .collect();
        let weights: Vec<f64> = stacks.iter().map(|(_, seconds)| seconds).collect();
        json!({
            "type": "sampled",
            "name": name,
            "unit": "seconds",
            "startValue": 0,
            "endValue": stacks.total(),
            "samples": samples,
            "weights": weights,
        })
    }
}
