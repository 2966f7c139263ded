//! Stacks in the file format of the Firefox Profiler (<https://profiler.firefox.com>).

use crate::{Moments, Profile, Stacks};
use fxprof_processed_profile as fx;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The busy and the waiting stacks, as two threads of one process. A sample lies in the slice of
/// time in which it was seen; what has no time is in the first slice, and so is everything if no
/// times were recorded.
pub fn file(profile: &Profile, name: &str) -> serde_json::Result<Value> {
    let moments = match &profile.moments {
        Some(moments) => Cow::Borrowed(moments),
        None => Cow::Owned(at_once(profile)),
    };
    let mut file = File::new(name, moments.slice);
    file.add("busy", &profile.busy, &moments.busy);
    file.add("waiting", &profile.waits, &moments.waits);
    file.finish()
}

/// One slice with everything.
fn at_once(profile: &Profile) -> Moments {
    Moments {
        slice: profile.seconds,
        busy: vec![profile.busy.clone()],
        waits: vec![profile.waits.clone()],
    }
}

/// A file to be.
struct File {
    profile: fx::Profile,
    process: fx::ProcessHandle,
    kernel: fx::CategoryPairHandle,
    user: fx::CategoryPairHandle,
    slice: f64,
    /// The milliseconds of the samples, by the name of their thread: the library has whole numbers
    /// only.
    weights: BTreeMap<String, Vec<f64>>,
}

impl File {
    fn new(name: &str, slice: f64) -> File {
        // When the tasks were watched is not known.
        let epoch = fx::ReferenceTimestamp::from_millis_since_unix_epoch(0.0);
        let interval = fx::SamplingInterval::from_nanos((1e9 * slice) as u64);
        let mut profile = fx::Profile::new(name, epoch, interval);
        // All frames have their names.
        profile.set_symbolicated(true);
        File {
            process: profile.add_process(name, 1, at(0.0)),
            kernel: profile
                .add_category("Kernel", fx::CategoryColor::Orange)
                .into(),
            user: profile
                .add_category("User", fx::CategoryColor::Yellow)
                .into(),
            profile,
            slice,
            weights: BTreeMap::new(),
        }
    }

    /// Adds a thread of `slices`, and of what `all` has besides.
    fn add(&mut self, name: &str, all: &Stacks, slices: &[Stacks]) {
        let number = self.weights.len() as u32 + 1;
        let thread = self
            .profile
            .add_thread(self.process, number, at(0.0), false);
        self.profile.set_thread_name(thread, name);
        self.profile
            .set_thread_samples_weight_type(thread, fx::WeightType::TracingMs);
        self.profile.add_initial_visible_thread(thread);
        let mut weights = Vec::new();
        let first = first(all, slices);
        let slices = std::iter::once(&first).chain(slices.iter().skip(1));
        for (number, stacks) in slices.enumerate() {
            let (mut before, total) = (0.0, stacks.total());
            for (stack, seconds) in stacks.iter() {
                let time = self.slice * (number as f64 + before / total);
                before += seconds;
                let stack = self.stack(thread, stack);
                let nothing = fx::CpuDelta::ZERO;
                self.profile.add_sample(thread, at(time), stack, nothing, 1);
                weights.push(1e3 * seconds);
            }
        }
        self.weights.insert(name.to_owned(), weights);
    }

    fn stack(&mut self, thread: fx::ThreadHandle, stack: &str) -> Option<fx::StackHandle> {
        let mut below = None;
        for frame in stack.split(';') {
            let (name, category_pair) = match frame.strip_suffix("_[k]") {
                Some(function) => (function, self.kernel),
                None => (frame, self.user),
            };
            let name = self.profile.intern_string(name);
            let frame = fx::FrameInfo {
                frame: fx::Frame::Label(name),
                category_pair,
                flags: fx::FrameFlags::empty(),
            };
            let frame = self.profile.intern_frame(thread, frame);
            below = Some(self.profile.intern_stack(thread, below, frame));
        }
        below
    }

    fn finish(self) -> serde_json::Result<Value> {
        let mut file = serde_json::to_value(&self.profile)?;
        for thread in file["threads"].as_array_mut().into_iter().flatten() {
            let weights = thread["name"]
                .as_str()
                .and_then(|name| self.weights.get(name));
            thread["samples"]["weight"] = json!(weights);
            // How a slice's CPU time falls between its samples is not known.
            if let Some(samples) = thread["samples"].as_object_mut() {
                samples.remove("threadCPUDelta");
            }
        }
        Ok(file)
    }
}

/// The first slice, with the time of `all` that is in none.
fn first(all: &Stacks, slices: &[Stacks]) -> Stacks {
    /// What additions in another order may lose.
    const EXACT: f64 = 1e-9;
    let mut rest: BTreeMap<&str, f64> = all.iter().collect();
    for (stack, seconds) in slices.iter().flat_map(Stacks::iter) {
        if let Some(rest) = rest.get_mut(stack) {
            *rest -= seconds;
        }
    }
    let mut first = slices.first().cloned().unwrap_or_default();
    for (stack, seconds) in rest.into_iter().filter(|(_, seconds)| *seconds > EXACT) {
        first.add(stack.split(';'), seconds);
    }
    first
}

fn at(seconds: f64) -> fx::Timestamp {
    fx::Timestamp::from_nanos_since_reference((1e9 * seconds) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::record::{Mode, Subject};

    fn stacks(all: &[(&str, f64)]) -> Stacks {
        let mut stacks = Stacks::default();
        all.iter()
            .for_each(|(stack, seconds)| stacks.add(stack.split(';'), *seconds));
        stacks
    }

    #[test]
    fn samples_lie_in_their_slices_and_have_their_milliseconds() {
        let mut profile = Profile::new(Subject::new("w", "os", 1, Mode::Threads), 1.0, "cycles");
        profile.busy = stacks(&[("w;main", 0.75)]);
        profile.waits = stacks(&[("w;read_[k]", 0.5), ("idle;w", 1.5)]);
        let slices = [
            stacks(&[]),
            stacks(&[("w;read_[k]", 0.25), ("idle;w", 0.25)]),
        ];
        profile.moments = Some(Moments {
            slice: 0.5,
            busy: vec![stacks(&[("w;main", 0.5)]), stacks(&[("w;main", 0.25)])],
            waits: slices.to_vec(),
        });
        let file = file(&profile, "title").expect("JSON");
        let samples = |thread: usize, of: &str| &file["threads"][thread]["samples"][of];
        assert_eq!(samples(0, "weight"), &json!([500.0, 250.0]));
        assert_eq!(samples(0, "timeDeltas"), &json!([0.0, 500.0]));
        // What no slice has comes first.
        assert_eq!(samples(1, "weight"), &json!([1250.0, 250.0, 250.0, 250.0]));
        assert_eq!(samples(1, "length"), &json!(4));
        let names = file["threads"].as_array().expect("threads").iter();
        let names: Vec<_> = names.map(|thread| &thread["name"]).collect();
        assert_eq!(names, [&json!("busy"), &json!("waiting")]);
    }

    #[test]
    fn without_times_everything_is_in_one_slice() {
        let mut profile = Profile::new(Subject::new("w", "sim", 1, Mode::Threads), 1.0, "cycles");
        profile.busy = stacks(&[("w;a", 0.25), ("w;b", 0.75)]);
        let file = file(&profile, "title").expect("JSON");
        let samples = &file["threads"][0]["samples"];
        assert_eq!(samples["weight"], json!([250.0, 750.0]));
        assert_eq!(samples["timeDeltas"], json!([0.0, 250.0]));
        assert_eq!(file["threads"][1]["samples"]["length"], json!(0));
    }
}
