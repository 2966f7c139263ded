//! Flame graphs as SVG: searchable, zoomable, one file.

use crate::Stacks;
use inferno::flamegraph::color::{BasicPalette, MultiPalette};
use inferno::flamegraph::{self, Options, Palette};
use std::io;

/// The flame graph of stacks; frames of the kernel in another colour.
pub fn svg(stacks: &Stacks, title: &str, subtitle: &str) -> Result<String, io::Error> {
    let mut options = options(title, subtitle);
    options.colors = match stacks.iter().any(|(stack, _)| stack.contains("_[k]")) {
        true => Palette::Multi(MultiPalette::Java),
        false => Palette::Basic(BasicPalette::Hot),
    };
    draw(&mut options, stacks.folded().lines())
}

/// What `after` has more of in red, what it has less of in blue. Both are parts of all
/// task time, so runs of different length compare.
pub fn difference(
    (before, before_seconds): (&Stacks, f64),
    (after, after_seconds): (&Stacks, f64),
    title: &str,
    subtitle: &str,
) -> Result<String, io::Error> {
    // Microseconds of each second of task time.
    let scaled = |stacks: &Stacks, seconds: f64| stacks.scaled(1.0 / seconds).folded();
    let mut lines = Vec::new();
    inferno::differential::from_readers(
        inferno::differential::Options::default(),
        scaled(before, before_seconds).as_bytes(),
        scaled(after, after_seconds).as_bytes(),
        &mut lines,
    )?;
    let lines = String::from_utf8(lines).map_err(io::Error::other)?;
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    let mut options = options(title, subtitle);
    draw(&mut options, lines)
}

fn options(title: &str, subtitle: &str) -> Options<'static> {
    let mut options = Options::default();
    options.title = title.to_owned();
    options.subtitle = (!subtitle.is_empty()).then(|| subtitle.to_owned());
    options.count_name = "µs".to_owned();
    options.deterministic = true;
    options
}

/// Nothing seen gives an empty picture that says so.
fn draw<'a>(
    options: &mut Options<'_>,
    lines: impl IntoIterator<Item = &'a str>,
) -> Result<String, io::Error> {
    let mut lines = lines.into_iter().peekable();
    let mut svg = Vec::new();
    match lines.peek() {
        None => flamegraph::from_lines(options, ["nothing seen 1"], &mut svg)?,
        Some(_) => flamegraph::from_lines(options, lines, &mut svg)?,
    }
    String::from_utf8(svg).map_err(io::Error::other)
}
