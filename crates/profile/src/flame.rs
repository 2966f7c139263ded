//! Flame graphs as SVG: searchable, zoomable, one file.

use crate::Stacks;
use inferno::flamegraph::color::{BasicPalette, MultiPalette};
use inferno::flamegraph::{self, Options, Palette};
use stats::printable;
use std::io;

/// The flame graph of `stacks`; kernel frames have a colour of their own.
pub fn svg(stacks: &Stacks, title: &str, subtitle: &str) -> Result<String, io::Error> {
    let mut options = options(title, subtitle);
    options.colors = if stacks.iter().any(|(stack, _)| stack.contains("_[k]")) {
        Palette::Multi(MultiPalette::Java)
    } else {
        Palette::Basic(BasicPalette::Hot)
    };
    draw(&mut options, stacks.folded().lines())
}

/// Which of two profiles gives a differential flame graph its widths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Widths {
    /// The later one: it shows new stacks, not vanished ones.
    After,
    /// The earlier one: it shows vanished stacks.
    Before,
}

/// Draws growth in `after` red and shrinkage blue. Each side is its stacks and the seconds that all
/// tasks had; stacks count as shares of that time, so runs of different length compare.
pub fn difference(
    before: (&Stacks, f64),
    after: (&Stacks, f64),
    widths: Widths,
    title: &str,
    subtitle: &str,
) -> Result<String, io::Error> {
    let (narrow, wide) = match widths {
        Widths::After => (before, after),
        Widths::Before => (after, before),
    };
    let mut options = options(title, subtitle);
    options.negate_differentials = widths == Widths::Before;
    // Microseconds per second of task time.
    let scaled = |(stacks, seconds): (&Stacks, f64)| stacks.scaled(1.0 / seconds).folded();
    let mut lines = Vec::new();
    inferno::differential::from_readers(
        inferno::differential::Options::default(),
        scaled(narrow).as_bytes(),
        scaled(wide).as_bytes(),
        &mut lines,
    )?;
    let lines = String::from_utf8(lines).map_err(io::Error::other)?;
    let mut lines: Vec<&str> = lines.lines().collect();
    lines.sort_unstable();
    draw(&mut options, lines.into_iter())
}

fn options(title: &str, subtitle: &str) -> Options<'static> {
    let mut options = Options::default();
    options.title = printable(title).into_owned();
    options.subtitle = (!subtitle.is_empty()).then(|| printable(subtitle).into_owned());
    options.count_name = "µs".to_owned();
    options.deterministic = true;
    options
}

/// Draws folded lines, whose last number is the width. If every stack takes less than a
/// microsecond, the picture says that there are no samples.
fn draw<'a>(
    options: &mut Options<'_>,
    lines: impl Iterator<Item = &'a str> + Clone,
) -> Result<String, io::Error> {
    let width = |line: &str| line.rsplit(' ').next().is_some_and(|width| width != "0");
    let mut svg = Vec::new();
    if lines.clone().any(width) {
        flamegraph::from_lines(options, lines, &mut svg)?
    } else {
        flamegraph::from_lines(options, ["nothing seen 1"], &mut svg)?
    }
    String::from_utf8(svg).map_err(io::Error::other)
}
