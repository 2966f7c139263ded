//! Metrics in Prometheus's text format: counters that only rise.

use profile::Interval;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Labelled values of a metric at most; the others are added up as `other`. Each new lock would
/// take memory here and at the reader.
const SERIES: usize = 1000;
/// The label of what has no values of its own.
const OTHER: &str = "other";

const LOCK: [&str; 3] = ["lock", "kind", "caller"];
const HOLDER: [&str; 3] = ["lock", "function", "process"];

/// A metric whose values have three labels each.
struct Family {
    name: &'static str,
    help: &'static str,
    labels: [&'static str; 3],
    values: BTreeMap<[String; 3], f64>,
}

/// A metric of one value.
struct Single {
    name: &'static str,
    help: &'static str,
    value: f64,
}

/// All that was counted since the start.
pub struct Counters {
    families: [Family; 4],
    singles: [Single; 4],
}

impl Default for Counters {
    fn default() -> Self {
        let family = |name, help, labels| Family {
            name,
            help,
            labels,
            values: BTreeMap::new(),
        };
        let single = |name, help| Single {
            name,
            help,
            value: 0.0,
        };
        Counters {
            families: [
                family(
                    "scalevm_lock_waits_total",
                    "Waits for the lock that ended.",
                    LOCK,
                ),
                family(
                    "scalevm_lock_wait_seconds_total",
                    "Seconds that threads waited for the lock.",
                    LOCK,
                ),
                family(
                    "scalevm_lock_spin_seconds_total",
                    "Seconds that threads spun for the lock outside of these waits.",
                    LOCK,
                ),
                family(
                    "scalevm_lock_holder_wait_seconds_total",
                    "Seconds that threads waited for the lock while this function held it.",
                    HOLDER,
                ),
            ],
            singles: [
                single("scalevm_watched_seconds_total", "Seconds of watching."),
                single(
                    "scalevm_thread_seconds_total",
                    "Seconds that the watched threads lived.",
                ),
                single(
                    "scalevm_cpu_seconds_total",
                    "Seconds that the watched threads were on a CPU.",
                ),
                single(
                    "scalevm_lost_records_total",
                    "Records for which the kernel had no room.",
                ),
            ],
        }
    }
}

impl Counters {
    /// Adds an interval.
    pub fn add(&mut self, interval: &Interval) {
        let [waits, wait, spin, held] = &mut self.families;
        for lock in &interval.locks {
            let labels = [named(&lock.name), lock.kind.name(), &lock.caller];
            waits.add(labels, lock.contentions as f64);
            wait.add(labels, lock.wait);
            spin.add(labels, lock.spin);
        }
        for holder in &interval.holders {
            let labels = [&*holder.lock, &holder.function, &holder.place()];
            held.add(labels, holder.waited);
        }
        let values = [
            interval.seconds,
            interval.lived,
            interval.busy,
            interval.lost as f64,
        ];
        for (single, value) in self.singles.iter_mut().zip(values) {
            single.value += value;
        }
    }

    /// All of it as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Single { name, help, value } in &self.singles {
            head(&mut text, name, help);
            writeln!(text, "{name} {value}").expect("a string");
        }
        for family in &self.families {
            head(&mut text, family.name, family.help);
            for (values, value) in &family.values {
                let labels = family.labels.iter().zip(values);
                let labels = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
                let labels = Vec::from_iter(labels).join(",");
                writeln!(text, "{}{{{labels}}} {value}", family.name).expect("a string");
            }
        }
        text
    }
}

impl Family {
    fn add(&mut self, labels: [&str; 3], value: f64) {
        let key = labels.map(str::to_owned);
        let is_full = self.values.len() >= SERIES && !self.values.contains_key(&key);
        let key = if is_full {
            [OTHER; 3].map(str::to_owned)
        } else {
            key
        };
        *self.values.entry(key).or_default() += value;
    }
}

fn head(text: &mut String, name: &str, help: &str) {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter").expect("a string");
}

/// A lock's name without its address, which differs from run to run.
fn named(lock: &str) -> &str {
    lock.split_once(" at 0x").map_or(lock, |(name, _)| name)
}

fn escaped(label: &str) -> String {
    let label = label.replace('\\', "\\\\").replace('"', "\\\"");
    label.replace('\n', "\\n")
}
