//! The differences between two machines, or of one machine between two days.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::Environment;

/// A fact that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The field of the environment; a dot leads into a map.
    pub name: String,
    /// Its value before; `null` if unknown.
    pub before: Option<String>,
    /// Its value now; `null` if unknown.
    pub after: Option<String>,
}

/// Fields that differ between any two runs, or do not describe the machine.
const ASIDE: [&str; 5] = [
    "arguments",
    "boot_id",
    "load_before",
    "load_after",
    "missing",
];

impl Environment {
    /// The differences from `before` to this machine, apart from loads and arguments. A fact
    /// unknown on both sides is none.
    pub fn differences(&self, before: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let [before, after] =
            [before, self].map(|one| serde_json::to_value(one).unwrap_or_default());
        compare("", &before, &after, &mut found);
        found.retain(|one| !ASIDE.iter().any(|name| one.belongs_to(name)));
        found
    }
}

impl Difference {
    fn belongs_to(&self, field: &str) -> bool {
        self.name
            .strip_prefix(field)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// `kernel 6.12.1 → 6.18.5`.
impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.rsplit('.').next().unwrap_or(&self.name);
        let [before, after] =
            [&self.before, &self.after].map(|value| value.as_deref().unwrap_or("unknown"));
        // The release is what people know; the whole line appears only where it alone tells two
        // builds apart.
        let [short_before, short_after] = [before, after].map(release);
        if name == "kernel" && short_before != short_after {
            write!(out, "{name} {short_before} → {short_after}")
        } else {
            write!(out, "{name} {before} → {after}")
        }
    }
}

/// The release in a kernel's description.
pub(super) fn release(kernel: &str) -> &str {
    kernel.split_whitespace().nth(1).unwrap_or(kernel)
}

fn compare(name: &str, before: &Value, after: &Value, found: &mut Vec<Difference>) {
    let (Some(old), Some(new)) = (before.as_object(), after.as_object()) else {
        if before != after {
            found.push(Difference {
                name: name.into(),
                before: text(before),
                after: text(after),
            });
        }
        return;
    };
    let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
    names.sort();
    names.dedup();
    for key in names {
        let path = match name {
            "" => key.clone(),
            _ => format!("{name}.{key}"),
        };
        let side = |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
        compare(&path, &side(old), &side(new), found);
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_that_differ_are_named() {
        let mitigations = |state: &str| Some([("meltdown".into(), state.into())].into());
        let before = Environment {
            kernel: Some("Linux 6.12.1 #1 SMP".into()),
            governor: Some("powersave".into()),
            mitigations: mitigations("Mitigation: PTI"),
            boot_id: Some("a".into()),
            arguments: vec!["run".into()],
            page_size: Some(4096),
            ..Environment::default()
        };
        let after = Environment {
            kernel: Some("Linux 6.18.5 #1 SMP".into()),
            governor: None,
            mitigations: mitigations("Vulnerable"),
            boot_id: Some("b".into()),
            arguments: vec!["sweep".into()],
            ..before.clone()
        };
        let found: Vec<String> = after
            .differences(&before)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "governor powersave → unknown",
                "kernel 6.12.1 → 6.18.5",
                "meltdown Mitigation: PTI → Vulnerable",
            ]
        );
        assert_eq!(after.differences(&after), []);
        let rebuilt = Environment {
            kernel: Some("Linux 6.18.5 #2 SMP".into()),
            ..after.clone()
        };
        assert_eq!(
            rebuilt.differences(&after)[0].to_string(),
            "kernel Linux 6.18.5 #1 SMP → Linux 6.18.5 #2 SMP"
        );
        assert_eq!(after.release(), Some("6.18.5"));
    }
}
