//! The machines that the results come from, side by side.

use super::name::subjects;
use crate::Source;
use serde_json::{Map, Value};
use stats::environment::Environment;

/// Facts about machines: one column for each file that describes its machine.
pub struct Machines {
    /// The files.
    pub columns: Vec<String>,
    /// The facts.
    pub rows: Vec<Row>,
    /// Simulated machines, in words.
    pub simulated: Vec<String>,
}

/// A fact.
pub struct Row {
    /// Its name.
    pub label: &'static str,
    /// Its value on each machine.
    pub cells: Vec<Cell>,
    /// True if the machines differ in it.
    pub differs: bool,
}

/// A fact on one machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Known(String),
    /// Unknown, and why.
    Unknown(String),
    /// Several facts, each a name and a value.
    List(Vec<(String, String)>),
}

/// The fields shown, in order, with their labels.
const FACTS: &[(&str, &str)] = &[
    ("kernel", "Kernel"),
    ("architecture", "Architecture"),
    ("cpu", "CPU"),
    ("stepping", "Family-model-stepping"),
    ("microcode", "Microcode"),
    ("cpus", "CPUs online"),
    ("topology", "Topology"),
    ("numa_nodes", "NUMA nodes"),
    ("numa_balancing", "NUMA balancing"),
    ("smt", "SMT"),
    ("governor", "Governor"),
    ("frequency_khz", "Frequency, kHz"),
    ("thp", "Transparent huge pages"),
    ("page_size", "Page size"),
    ("aslr", "Address randomisation"),
    ("mitigations", "Mitigations"),
    ("cmdline", "Kernel command line"),
    ("cgroup_cpu", "CPU limit"),
    ("cgroup_memory", "Memory limit"),
    ("hypervisor", "Hypervisor"),
    ("clocksource", "Clock"),
    ("boot_id", "Boot"),
    ("load_before", "Load of others before"),
    ("load_after", "Load of others after"),
    ("version", "Tool"),
    ("commit", "Commit of the tool"),
];

/// Fields that may differ between comparable results.
const VARIES: &[&str] = &["load_before", "load_after"];

impl Machines {
    /// The first machine of each file: later ones differ only in their load.
    pub fn of(sources: &[Source], files: &[String]) -> Self {
        let named = sources.iter().zip(files).filter_map(|(source, file)| {
            let machine = source.machines().next()?;
            Some((file.clone(), machine))
        });
        let (columns, machines): (Vec<String>, Vec<&Environment>) = named.unzip();
        let values: Vec<Map<String, Value>> = machines.into_iter().map(fields).collect();
        let row = |&(field, label): &(&str, &'static str)| {
            let cells: Vec<Cell> = values.iter().map(|one| cell(one, field)).collect();
            let differs = cells.windows(2).any(|two| two[0] != two[1]) && !VARIES.contains(&field);
            Row {
                label,
                cells,
                differs,
            }
        };
        let rows = if values.is_empty() {
            Vec::new()
        } else {
            FACTS.iter().map(row).collect()
        };
        Machines {
            columns,
            rows,
            simulated: simulated(sources),
        }
    }

    /// The facts in which the machines differ.
    pub fn differences(&self) -> Vec<&'static str> {
        let differing = self.rows.iter().filter(|row| row.differs);
        differing.map(|row| row.label).collect()
    }
}

fn fields(machine: &Environment) -> Map<String, Value> {
    match serde_json::to_value(machine) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(), // an environment is an object of plain values
    }
}

fn cell(fields: &Map<String, Value>, field: &str) -> Cell {
    match fields.get(field) {
        None | Some(Value::Null) => {
            let reason = fields.get("missing").and_then(|all| all.get(field));
            let reason = reason.and_then(Value::as_str).unwrap_or("not recorded");
            Cell::Unknown(reason.to_owned())
        }
        Some(Value::Object(map)) if field == "mitigations" => {
            let item = |(name, value): (&String, &Value)| (name.clone(), plain(value));
            Cell::List(map.iter().map(item).collect())
        }
        Some(Value::Object(map)) => Cell::Known(parts(field, map)),
        Some(value) => Cell::Known(plain(value)),
    }
}

/// A fact that consists of several numbers.
fn parts(field: &str, map: &Map<String, Value>) -> String {
    let number = |name: &str| map.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN);
    match field {
        "topology" => format!(
            "sockets: {}, cores: {}, hardware threads: {}",
            number("sockets"),
            number("cores"),
            number("threads")
        ),
        _ => format!(
            "{:.2} of {} CPUs, and {:.2} stolen",
            number("foreign"),
            number("cpus"),
            number("steal")
        ),
    }
}

/// A value as text; `1–2` of a pair.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(plain).collect::<Vec<_>>().join("–"),
        other => other.to_string(),
    }
}

fn simulated(sources: &[Source]) -> Vec<String> {
    let mut all = Vec::new();
    for subject in sources.iter().flat_map(subjects) {
        let (Some(machine), Some(topology)) = (&subject.profile, &subject.topology) else {
            continue;
        };
        let text = format!("{machine}: {topology} (sockets × cores × threads), in virtual time");
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all
}
