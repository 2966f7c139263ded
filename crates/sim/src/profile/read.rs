//! Reads a profile from the text of its file.

use super::fields::{Field, LONGEST, check, fields};
use super::{
    Arbitration, Core, Ipi, KernelCosts, MachineProfile, MemoryCosts, PerClass, ProfileError,
    Topology, Transfer,
};
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

type Value<'t> = Spanned<DeValue<'t>>;

/// Reads the text of a file.
pub(super) fn read(text: &str, file: &str) -> Result<MachineProfile, ProfileError> {
    let file = File { text, name: file };
    let root = DeTable::parse(text).map_err(|error| {
        let reason = error.message().replace('\n', " ");
        match error.span() {
            Some(span) => file.at(&span, reason),
            None => file.whole(reason),
        }
    })?;
    let (mut names, mut entries) = file.entries(root.get_ref())?;
    let mut text = |key: &str| {
        let name = names.remove(key);
        name.ok_or_else(|| file.whole(format!("`{key}` is missing")))
    };
    let mut profile = blank(text("name")?, text("about")?);
    file.refuse_unknown(&mut profile, &entries)?;
    let mut spans = BTreeMap::new();
    let mut sources = BTreeMap::new();
    for (key, field) in fields(&mut profile) {
        let missing = || file.whole(format!("`{key}` is missing"));
        let entry = entries.remove(key).ok_or_else(missing)?;
        let bad = |reason| file.at(&entry.span, format!("`{key}`: {reason}"));
        sources.insert(key.to_owned(), fill(field, &entry).map_err(bad)?);
        spans.insert(key, entry.span);
    }
    profile.sources = sources;
    check(&profile).map_err(|(key, reason)| file.at(&spans[key], format!("`{key}`: {reason}")))?;
    Ok(profile)
}

/// A profile whose fields are yet to be filled.
fn blank(name: String, about: String) -> MachineProfile {
    MachineProfile {
        costs: name.clone(),
        name,
        about,
        topology: Topology::default(),
        transfer: Transfer::default(),
        core: Core::default(),
        kernel: KernelCosts::default(),
        ipi: Ipi::default(),
        memory: MemoryCosts::default(),
        sources: BTreeMap::new(),
    }
}

/// The file's text and its name in errors.
struct File<'t> {
    text: &'t str,
    name: &'t str,
}

/// The value of a key, and its position.
struct Entry<'t> {
    table: &'t DeTable<'t>,
    span: Range<usize>,
}

type Entries<'t> = (BTreeMap<String, String>, BTreeMap<String, Entry<'t>>);

impl File<'_> {
    fn whole(&self, reason: String) -> ProfileError {
        ProfileError::Invalid {
            file: self.name.to_owned(),
            reason,
        }
    }

    fn at(&self, span: &Range<usize>, reason: String) -> ProfileError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        ProfileError::Line {
            file: self.name.to_owned(),
            line: before.matches('\n').count() + 1,
            reason,
        }
    }

    /// Called before missing keys are reported: a misspelt key is both unknown and missing.
    fn refuse_unknown(
        &self,
        profile: &mut MachineProfile,
        entries: &BTreeMap<String, Entry<'_>>,
    ) -> Result<(), ProfileError> {
        let known: Vec<&str> = fields(profile).iter().map(|(key, _)| *key).collect();
        let mut unknown = entries.iter().filter(|(key, _)| !known.contains(&&***key));
        match unknown.next() {
            Some((key, entry)) => Err(self.at(&entry.span, format!("unknown key `{key}`"))),
            None => Ok(()),
        }
    }

    /// The strings at the top, and the entries of all sections by dotted key.
    fn entries<'t>(&self, root: &'t DeTable<'t>) -> Result<Entries<'t>, ProfileError> {
        let (mut names, mut entries) = (BTreeMap::new(), BTreeMap::new());
        for (section, value) in root {
            let span = section.span();
            let section = section.get_ref();
            match value.get_ref() {
                DeValue::String(text) if matches!(&**section, "name" | "about") => {
                    let text = one_line(text);
                    let text = text.map_err(|why| self.at(&span, format!("`{section}`: {why}")))?;
                    names.insert(section.to_string(), text);
                }
                DeValue::Table(table) => {
                    for (key, value) in table {
                        let (span, key) = (key.span(), format!("{section}.{}", key.get_ref()));
                        let DeValue::Table(table) = value.get_ref() else {
                            let reason =
                                format!("`{key}` is not `{{ value = …, source = \"…\" }}`");
                            return Err(self.at(&span, reason));
                        };
                        entries.insert(key, Entry { table, span });
                    }
                }
                _ => {
                    let reason = format!("unknown section `{section}`");
                    return Err(self.at(&span, reason));
                }
            }
        }
        Ok((names, entries))
    }
}

/// Fills a field and returns its source.
fn fill(field: Field<'_>, entry: &Entry<'_>) -> Result<String, String> {
    let get = |name: &str| entry.table.get(name).map(Spanned::get_ref);
    let value = get("value").ok_or("`value` is missing")?;
    let source = get("source").and_then(DeValue::as_str);
    let source = source.ok_or("`source` is missing, which says where the number comes from")?;
    let source = one_line(source).map_err(|why| format!("`source`: {why}"))?;
    let bypasses = get("bypasses");
    let nearest = matches!(field, Field::Arbitration(_)) && value.as_str() == Some("nearest");
    for key in entry.table.keys().map(|key| &**key.get_ref()) {
        let known = matches!(key, "value" | "source") || (nearest && key == "bypasses");
        if !known {
            return Err(format!("`{key}` is missing here"));
        }
    }
    match field {
        Field::Count(count) => *count = integer(value)?,
        Field::Time(time) => *time = picoseconds(value)?,
        Field::Times(times) => *times = list(value, picoseconds)?,
        Field::Clocks(clocks) => clocks.0 = list(value, clock)?,
        Field::Number(place, ..) => *place = number(value)?,
        Field::Hops(hops) => *hops = list(value, |row| list(row, integer))?,
        Field::Legs(legs) => {
            let found = list(value, number)?;
            *legs = found.try_into().map_err(|_| "expected three legs")?;
        }
        Field::PerClass(classes) => *classes = per_class(&list(value, picoseconds)?)?,
        Field::Arbitration(arbitration) => *arbitration = arbiter(value, bypasses)?,
    }
    Ok(source)
}

/// Reads a row of busy cores and a clock.
fn clock(row: &DeValue<'_>) -> Result<(usize, f64), String> {
    match row.as_array().map(|row| &row[..]) {
        Some([cores, clock]) => Ok((integer(cores.get_ref())?, number(clock.get_ref())?)),
        _ => Err("not [[busy cores, GHz], …]".into()),
    }
}

fn per_class(times: &[u64]) -> Result<PerClass, String> {
    match *times {
        [sibling, cluster, socket, ref hops @ ..] => Ok(PerClass {
            sibling,
            cluster,
            socket,
            hops: hops.to_vec(),
        }),
        _ => Err("not [sibling, cluster, socket, one hop, …]".into()),
    }
}

fn arbiter(value: &DeValue<'_>, bypasses: Option<&DeValue<'_>>) -> Result<Arbitration, String> {
    match value.as_str() {
        Some("first-come") => Ok(Arbitration::FirstCome),
        Some("nearest") => {
            let bypasses = bypasses.ok_or("`nearest` needs `bypasses`")?;
            let bypasses = integer(bypasses)?;
            Ok(Arbitration::Nearest { bypasses })
        }
        _ => Err("neither \"first-come\" nor \"nearest\"".into()),
    }
}

/// Nanoseconds of the file as picoseconds.
fn picoseconds(value: &DeValue<'_>) -> Result<u64, String> {
    let time = (number(value)? * 1e3).round();
    if (1.0..=LONGEST as f64).contains(&time) {
        Ok(time as u64)
    } else {
        Err("a time must be from 0.001 ns to a second".into())
    }
}

fn number(value: &DeValue<'_>) -> Result<f64, String> {
    let digits = match value {
        DeValue::Float(float) => float.as_str(),
        DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str(),
        _ => return Err("not a number".into()),
    };
    let number: f64 = digits.parse().map_err(|_| "not a number")?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err("not a finite number".into())
    }
}

fn integer<T: std::str::FromStr>(value: &DeValue<'_>) -> Result<T, String> {
    let DeValue::Integer(integer) = value else {
        return Err("not a whole number".into());
    };
    let found = (integer.radix() == 10).then(|| integer.as_str().parse().ok());
    found
        .flatten()
        .ok_or_else(|| format!("{integer} is out of range"))
}

fn list<T>(
    value: &DeValue<'_>,
    each: impl Fn(&DeValue<'_>) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let list = value.as_array().ok_or("not a list")?;
    list.iter()
        .map(|one: &Value<'_>| each(one.get_ref()))
        .collect()
}

/// Checks that a text fits into a table: it is not empty, and has no control characters.
fn one_line(text: &str) -> Result<String, &'static str> {
    if text.trim().is_empty() || text.chars().any(char::is_control) {
        Err("not one line of text")
    } else {
        Ok(text.to_owned())
    }
}
