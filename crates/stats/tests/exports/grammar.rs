//! OpenMetrics 1.0: the text format's grammar and those rules about order that a gauge meets.

use std::collections::BTreeSet;

/// How many samples `text` has, or its first line that breaks a rule.
pub fn check(text: &str) -> Result<usize, String> {
    let lines = text.strip_suffix("# EOF\n").ok_or("no end")?;
    let mut checker = Checker::default();
    for line in lines.split_terminator('\n') {
        let checked = match line.strip_prefix("# ") {
            Some(metadata) => checker.metadata(metadata),
            None => checker.sample(line),
        };
        checked.map_err(|why| format!("{why}: {line}"))?;
    }
    Ok(checker.samples)
}

#[derive(Default)]
struct Checker {
    families: BTreeSet<String>,
    family: String,
    metadata: Vec<String>,
    metrics: BTreeSet<String>,
    metric: String,
    time: f64,
    samples: usize,
}

impl Checker {
    fn metadata(&mut self, line: &str) -> Result<(), &'static str> {
        let mut words = line.splitn(3, ' ');
        let [what, name, rest] = [(); 3].map(|()| words.next().unwrap_or_default());
        if !is_name(name) {
            return Err("bad name");
        }
        if self.family != name {
            if !self.families.insert(name.into()) {
                return Err("families are interleaved");
            }
            self.family = name.into();
            self.metadata.clear();
        } else if self.metric.split('{').next() == Some(name) {
            return Err("metadata behind samples");
        }
        if self.metadata.iter().any(|known| known == what) {
            return Err("metadata twice");
        }
        self.metadata.push(what.into());
        match what {
            "TYPE" if rest == "gauge" => Ok(()),
            "UNIT" if name.ends_with(&format!("_{rest}")) => Ok(()),
            "HELP" if !rest.is_empty() && !rest.contains(['"', '\\', '\r']) => Ok(()),
            _ => Err("bad metadata"),
        }
    }

    fn sample(&mut self, line: &str) -> Result<(), &'static str> {
        let (metric, rest) = metric(line)?;
        if metric.split('{').next() != Some(&self.family) {
            return Err("a sample of another family");
        }
        let mut words = rest.strip_prefix(' ').ok_or("no value")?.split(' ');
        number(words.next())?;
        let time = number(words.next())?;
        if words.next().is_some() {
            return Err("too many words");
        }
        if self.metric != metric {
            if !self.metrics.insert(metric.into()) {
                return Err("metrics are interleaved");
            }
            self.metric = metric.into();
        } else if time < self.time {
            return Err("times run backwards");
        }
        self.time = time;
        self.samples += 1;
        Ok(())
    }
}

/// The metric's name and labels, and what follows.
fn metric(line: &str) -> Result<(&str, &str), &'static str> {
    let (name, mut rest) = line.split_once('{').ok_or("no labels")?;
    let mut names = BTreeSet::new();
    loop {
        let (label, value) = rest.split_once("=\"").ok_or("no label")?;
        if !is_name(name) || !is_name(label) || label.contains(':') || !names.insert(label) {
            return Err("bad name");
        }
        rest = after_string(value)?;
        match rest.strip_prefix(',') {
            Some(next) => rest = next,
            None => break,
        }
    }
    let rest = rest.strip_prefix('}').ok_or("labels do not end")?;
    Ok((&line[..line.len() - rest.len()], rest))
}

/// What follows the quote that ends a string, in which only `\\`, `\"` and `\n` are escaped.
fn after_string(text: &str) -> Result<&str, &'static str> {
    let mut characters = text.char_indices();
    while let Some((index, character)) = characters.next() {
        match character {
            '"' => return Ok(&text[index + 1..]),
            '\\' if !matches!(characters.next(), Some((_, '\\' | '"' | 'n'))) => {
                return Err("bad escape");
            }
            _ => {}
        }
    }
    Err("a string does not end")
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !name.is_empty() && name.chars().all(fits) && !name.starts_with(|c: char| c.is_ascii_digit())
}

/// A real number with a point or an exponent.
fn number(word: Option<&str>) -> Result<f64, &'static str> {
    let word = word.ok_or("a number is missing")?;
    match word.parse::<f64>() {
        Ok(number) if number.is_finite() && word.contains(['.', 'e']) => Ok(number),
        _ => Err("bad number"),
    }
}

#[test]
fn broken_text_is_refused() {
    let sound = "# TYPE a_b gauge\n# UNIT a_b b\n# HELP a_b Help.\n\
                 a_b{x=\"1\"} 1.0 1.5\na_b{x=\"1\"} 2.0 2.5\na_b{x=\"\\\\\\\"\\n\"} 1.0 1.5\n# EOF\n";
    assert_eq!(check(sound), Ok(3));
    for (from, to) in [
        ("# EOF\n", ""),
        ("# UNIT a_b b", "# UNIT a_b c"),
        ("# UNIT a_b b", "# TYPE a_b gauge"),
        ("a_b{x=\"1\"} 2.0 2.5", "a_c{x=\"1\"} 2.0 2.5"),
        ("2.0 2.5", "2.0 0.5"),
        ("2.0 2.5", "2.0"),
        ("2.0 2.5", "x 2.5"),
        ("\\n", "\\t"),
        ("{x=\"1\"} 2.0", "{x=\"1\",x=\"1\"} 2.0"),
        ("{x=\"1\"} 2.0", "{0=\"1\"} 2.0"),
        (
            "{x=\"\\\\\\\"\\n\"} 1.0 1.5",
            "{x=\"2\"} 1.0 1.5\na_b{x=\"1\"} 3.0 3.5",
        ),
        (
            "1.0 1.5\na_b{x=\"1\"} 2.0",
            "1.0 1.5\n# HELP a_b Again.\na_b{x=\"1\"} 2.0",
        ),
    ] {
        assert!(sound.contains(from), "{from}");
        assert!(check(&sound.replacen(from, to, 1)).is_err(), "{to}");
    }
}
