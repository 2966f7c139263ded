//! Charts as SVG: rates over tasks, with bands, the fitted law and the curve's features.

mod axis;
mod marks;

use crate::page::Chart;
use axis::{Axis, Scale};
use maud::{Markup, html};
use stats::metric;

/// The picture's size in its own units; the style sheet scales it.
const SIZE: (f64, f64) = (680.0, 380.0);
/// Margins for labels: left, right, top, bottom.
const MARGINS: (f64, f64, f64, f64) = (64.0, 122.0, 30.0, 46.0);
/// The number of colours; further series start over.
pub(crate) const COLOURS: usize = 7;
/// Rates this far apart are easier to read on a logarithmic scale.
const FAR_APART: f64 = 20.0;

/// The axes of a chart.
struct Frame {
    x: Axis,
    y: Axis,
}

/// Returns true if there is more than one number of tasks.
pub(crate) fn is_curve(chart: &Chart) -> bool {
    let mut tasks = chart.series.iter().flat_map(|one| &one.dots);
    let first = tasks.next().map(|dot| dot.tasks);
    tasks.any(|dot| Some(dot.tasks) != first)
}

/// Returns true if the rates are more readable on logarithmic scales.
pub(crate) fn is_wide(chart: &Chart) -> bool {
    let (low, high) = range(chart);
    low > 0.0 && high / low > FAR_APART
}

/// The chart. `label` describes it for screen readers.
pub(crate) fn svg(chart: &Chart, logarithmic: bool, label: &str) -> Markup {
    let scale = if logarithmic {
        Scale::Logarithmic
    } else {
        Scale::Linear
    };
    let frame = Frame::of(chart, scale);
    let (width, height) = SIZE;
    let names = names(chart, &frame);
    html! {
        svg.chart role="img" aria-label=(label) viewBox={ "0 0 " (width) " " (height) } {
            (axis::horizontal(&frame.x, frame.y.start))
            (axis::vertical(&frame.y, frame.x.start, frame.x.end))
            text.axis x=(frame.x.end) y=(height - 6.0) text-anchor="end" { "tasks" }
            text.axis.unit x="4" y="15" { (chart.unit) }
            @for series in &chart.series {
                g class={ "s" (series.colour % COLOURS) } {
                    (marks::band(series, &frame.x, &frame.y))
                    (marks::law(series, &frame.x, &frame.y))
                    (marks::line(series, &frame.x, &frame.y))
                    (marks::dots(series, &frame.x, &frame.y))
                    (marks::features(series, &frame.x, &frame.y))
                }
            }
            @for (colour, y, name) in &names {
                text class={ "name s" (colour % COLOURS) }
                    x=(frame.x.end + 10.0) y=(axis::round(y + 4.0)) { (name) }
            }
        }
    }
}

impl Frame {
    fn of(chart: &Chart, scale: Scale) -> Self {
        let (left, right, top, bottom) = MARGINS;
        let dots = chart.series.iter().flat_map(|one| &one.dots);
        let mut tasks: Vec<u32> = dots.map(|dot| dot.tasks).collect();
        tasks.sort_unstable();
        tasks.dedup();
        let (low, high) = range(chart);
        Frame {
            x: Axis::of_tasks(&tasks, scale, (left, SIZE.0 - right)),
            y: Axis::of_rates(low, high, scale, (SIZE.1 - bottom, top)),
        }
    }
}

/// The lowest rate above 0 and the highest, bands included.
fn range(chart: &Chart) -> (f64, f64) {
    let dots = chart.series.iter().flat_map(|one| &one.dots);
    let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
    for dot in dots {
        let top = dot.band.map_or(dot.rate, |band| band.1);
        high = high.max(top);
        let bottoms = [Some(dot.rate), dot.band.map(|band| band.0)];
        // A band that reaches down to zero would stretch a logarithmic scale without end.
        let bottoms = bottoms.into_iter().flatten();
        low = bottoms
            .filter(|&rate| rate > dot.rate / 4.0)
            .fold(low, f64::min);
    }
    (low.min(high), high)
}

/// Each series' name at the end of its line, moved so that none covers another.
fn names(chart: &Chart, frame: &Frame) -> Vec<(usize, f64, String)> {
    const LINE: f64 = 15.0;
    let end = |series: &crate::page::Series| {
        let last = series.dots.last()?;
        Some((
            series.colour,
            frame.y.at(last.rate),
            shortened(&series.name),
        ))
    };
    let mut names: Vec<_> = chart.series.iter().filter_map(end).collect();
    names.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut free = frame.y.end;
    for name in &mut names {
        name.1 = name.1.max(free);
        free = name.1 + LINE;
    }
    let mut floor = frame.y.start;
    for name in names.iter_mut().rev() {
        name.1 = name.1.min(floor);
        floor = name.1 - LINE;
    }
    names
}

/// The part that fits next to the chart; the table has the whole name.
fn shortened(name: &str) -> String {
    const FITS: usize = 16;
    if name.chars().count() > FITS {
        name.chars().take(FITS - 1).chain(['…']).collect()
    } else {
        name.to_owned()
    }
}

/// A description of the chart.
pub(crate) fn label(chart: &Chart) -> String {
    let one = |series: &crate::page::Series| {
        let ends = series.dots.first().zip(series.dots.last());
        let ends = ends.map(|(first, last)| {
            let (from, to) = (metric(first.rate), metric(last.rate));
            format!(" from {from} at {} to {to} at {}", first.tasks, last.tasks)
        });
        let peak = series.shape.as_ref().map(|shape| {
            let rate = metric(shape.peak.throughput);
            format!(", peak {rate} at {}", shape.peak.cpus)
        });
        format!(
            "{}{}{}",
            series.name,
            ends.unwrap_or_default(),
            peak.unwrap_or_default()
        )
    };
    let all: Vec<String> = chart.series.iter().map(one).collect();
    let (workload, unit) = (&chart.workload, &chart.unit);
    format!("{workload}, {unit} over tasks: {}.", all.join("; "))
}
