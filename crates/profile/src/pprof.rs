//! Stacks in the file format of pprof (<https://github.com/google/pprof>), which many services read
//! too: a compressed message of protocol buffers.

use crate::{Profile, Stacks};
use flate2::{Compression, write::GzEncoder};
use prost::Message;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// The number of the mapping that stands for all programs.
const PROGRAMS: u64 = 1;
/// The number of the mapping that stands for the kernel.
const KERNEL: u64 = 2;

/// The busy stacks as `cpu` and those that waited as `off-cpu`, both in nanoseconds, as a file's
/// content.
pub fn file(profile: &Profile, name: &str) -> io::Result<Vec<u8>> {
    let mut zip = GzEncoder::new(Vec::new(), Compression::default());
    zip.write_all(&message(profile, name).encode_to_vec())?;
    zip.finish()
}

fn message(profile: &Profile, name: &str) -> File {
    let mut file = Tables::default();
    let types = ["cpu", "off-cpu"].map(|kind| file.value(kind, "nanoseconds"));
    let mappings = [(PROGRAMS, name), (KERNEL, "[kernel.kallsyms]")];
    let mappings = mappings.map(|(id, name)| Mapping {
        id,
        filename: file.text(name),
        has_functions: true,
    });
    let samples = samples(profile).into_iter().map(|(stack, values)| Sample {
        // From the leaf.
        location_id: stack
            .rsplit(';')
            .map(|frame| file.location(frame))
            .collect(),
        value: values.to_vec(),
    });
    File {
        sample_type: types.to_vec(),
        sample: samples.collect(),
        mapping: mappings.to_vec(),
        duration_nanos: nanoseconds(profile.seconds),
        comment: vec![file.text(&profile.bottleneck)],
        default_sample_type: file.text("cpu"),
        location: file.locations,
        function: file.functions,
        string_table: file.texts.0,
    }
}

/// Nanoseconds busy and waiting, by stack.
fn samples(profile: &Profile) -> BTreeMap<&str, [i64; 2]> {
    fn add<'a>(samples: &mut BTreeMap<&'a str, [i64; 2]>, stacks: &'a Stacks, column: usize) {
        for (stack, seconds) in stacks.iter() {
            samples.entry(stack).or_default()[column] += nanoseconds(seconds);
        }
    }
    let mut samples = BTreeMap::new();
    add(&mut samples, &profile.busy, 0);
    add(&mut samples, &profile.waits, 1);
    samples
}

fn nanoseconds(seconds: f64) -> i64 {
    (1e9 * seconds).round() as i64
}

/// What samples refer to by number.
#[derive(Default)]
struct Tables {
    texts: Texts,
    locations: Vec<Location>,
    functions: Vec<Function>,
    /// The locations by their frame.
    numbers: HashMap<String, u64>,
}

impl Tables {
    fn text(&mut self, text: &str) -> i64 {
        self.texts.number(text)
    }

    fn value(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType {
            r#type: self.text(kind),
            unit: self.text(unit),
        }
    }

    /// The number of a frame's location, which has a function of the same number.
    fn location(&mut self, frame: &str) -> u64 {
        if let Some(&number) = self.numbers.get(frame) {
            return number;
        }
        let id = self.locations.len() as u64 + 1;
        let (function, mapping_id) = match frame.strip_suffix("_[k]") {
            Some(function) => (function, KERNEL),
            None => (frame, PROGRAMS),
        };
        let name = self.text(function);
        self.functions.push(Function { id, name });
        self.locations.push(Location {
            id,
            mapping_id,
            line: vec![Line { function_id: id }],
        });
        self.numbers.insert(frame.to_owned(), id);
        id
    }
}

/// All texts and their numbers; the first text is empty.
struct Texts(Vec<String>, HashMap<String, i64>);

impl Default for Texts {
    fn default() -> Texts {
        Texts(vec![String::new()], HashMap::from([(String::new(), 0)]))
    }
}

impl Texts {
    fn number(&mut self, text: &str) -> i64 {
        let Texts(texts, numbers) = self;
        *numbers.entry(text.to_owned()).or_insert_with(|| {
            texts.push(text.to_owned());
            texts.len() as i64 - 1
        })
    }
}

// The messages of pprof's profile.proto, without the fields that nothing here fills.

#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use stats::record::{Mode, Subject};
    use std::io::Read;

    #[test]
    fn each_stack_has_its_nanoseconds_and_its_functions_from_the_leaf() {
        let mut profile = Profile::new(Subject::new("w", "os", 1, Mode::Threads), 2.0, "cycles");
        profile.busy.add(["w", "main", "fault_[k]"], 0.25);
        profile.waits.add(["w", "main", "fault_[k]"], 0.5);
        profile.waits.add(["idle", "w"], 1.0);
        let mut message = Vec::new();
        let file = file(&profile, "title").expect("it compresses");
        let mut zip = GzDecoder::new(&file[..]);
        zip.read_to_end(&mut message).expect("it is compressed");
        let file = File::decode(&message[..]).expect("it is a message");
        let text = |number: i64| file.string_table[number as usize].as_str();
        let frame = |id: &u64| {
            let location = &file.location[*id as usize - 1];
            let function = &file.function[location.line[0].function_id as usize - 1];
            (text(function.name), location.mapping_id)
        };
        let sample =
            |one: &Sample| -> Vec<_> { one.location_id.iter().map(frame).collect::<Vec<_>>() };
        assert_eq!(text(0), "");
        let types = file
            .sample_type
            .iter()
            .map(|one| [text(one.r#type), text(one.unit)]);
        let types: Vec<_> = types.collect();
        assert_eq!(types, [["cpu", "nanoseconds"], ["off-cpu", "nanoseconds"]]);
        let stacks: Vec<_> = file.sample.iter().map(sample).collect();
        assert_eq!(
            stacks[1],
            [("fault", KERNEL), ("main", PROGRAMS), ("w", PROGRAMS)]
        );
        assert_eq!(stacks[0], [("w", PROGRAMS), ("idle", PROGRAMS)]);
        let values: Vec<_> = file.sample.iter().map(|one| &one.value[..]).collect();
        assert_eq!(values, [[0, 1_000_000_000], [250_000_000, 500_000_000]]);
        assert_eq!(file.duration_nanos, 2_000_000_000);
    }
}
