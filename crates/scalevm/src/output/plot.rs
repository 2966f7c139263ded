//! Curves in the terminal.

use super::curves::Series;
use super::short;
use std::fmt::Write;
use textplots::{Chart, Plot, Shape};

/// Size of a chart in dots; a character has 2 × 4.
const WIDTH: u32 = 140;
const HEIGHT: u32 = 48;

/// A curve to draw.
pub struct Curve {
    /// Its title.
    pub label: String,
    /// Tasks and operations a second.
    pub points: Vec<(usize, f64)>,
}

/// One chart with all curves; each is named where it ends.
pub fn curves(series: &[Series]) -> String {
    let curve = |one: &Series| Curve {
        label: one.label.to_owned(),
        points: one.curve(),
    };
    draw(&series.iter().map(curve).collect::<Vec<_>>(), "tasks")
}

/// Rates that differ by more than this are drawn on a logarithmic scale.
const LINEAR: f64 = 20.0;

/// Draws curves over the number of `what`. Curves of one point are left out.
pub fn draw(curves: &[Curve], what: &str) -> String {
    let curves: Vec<&Curve> = curves.iter().filter(|one| one.points.len() > 1).collect();
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let rates = || points().map(|point| point.1).filter(|&rate| rate > 0.0);
    let (lowest, highest) = (
        rates().fold(f64::MAX, f64::min),
        rates().fold(0.0, f64::max),
    );
    if highest <= 0.0 {
        return String::new();
    }
    let scale = Scale::new(lowest, highest);
    let most = points().map(|point| point.0).max().unwrap_or(0);
    let dots: Vec<Vec<(f32, f32)>> = curves
        .iter()
        .map(|one| {
            one.points
                .iter()
                .map(|&(tasks, rate)| (tasks as f32, scale.of(rate)))
                .collect()
        })
        .collect();
    let shapes: Vec<Shape<'_>> = dots.iter().map(|dots| Shape::Lines(dots)).collect();
    let (bottom, top) = (scale.of(scale.lowest), scale.of(highest));
    let mut chart = Chart::new_with_y_range(WIDTH, HEIGHT, 0.0, most as f32, bottom, top);
    let chart = shapes
        .iter()
        .fold(&mut chart, |chart, shape| chart.lineplot(shape));
    chart.borders();
    chart.figures();
    let picture = chart.frame();
    let rows = picture.lines().count();
    let mut text = String::new();
    for (row, line) in picture.lines().enumerate() {
        let names = curves.iter().zip(&dots).filter_map(|(one, dots)| {
            let (_, end) = dots[dots.len() - 1];
            let from_top = (top - end) / (top - bottom).max(f32::MIN_POSITIVE);
            ((from_top * (rows - 1) as f32).round() as usize == row).then_some(one.label.as_str())
        });
        let names = names.collect::<Vec<_>>().join(", ");
        let rate = match row {
            0 => short(highest),
            _ if row + 1 == rows => short(scale.lowest),
            _ => String::new(),
        };
        // A String takes everything.
        let _ = writeln!(text, "{}", format!("{rate:>9} {line} {names}").trim_end());
    }
    let width = WIDTH as usize / 2 - 2 - what.len();
    let note = if scale.logarithmic {
        " (rates on a logarithmic scale)"
    } else {
        ""
    };
    let _ = writeln!(text, "{:>11} {what}{most:>width$}{note}", 0);
    text
}

/// The scale that turns rates into heights.
struct Scale {
    logarithmic: bool,
    /// The rate at the bottom.
    lowest: f64,
}

impl Scale {
    fn new(lowest: f64, highest: f64) -> Self {
        let logarithmic = highest > LINEAR * lowest;
        Scale {
            logarithmic,
            lowest: if logarithmic { lowest } else { 0.0 },
        }
    }

    fn of(&self, rate: f64) -> f32 {
        if self.logarithmic {
            rate.max(self.lowest).log10() as f32
        } else {
            rate as f32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(label: &str, points: &[(usize, f64)]) -> Curve {
        Curve {
            label: label.into(),
            points: points.to_vec(),
        }
    }

    #[test]
    fn curves_are_named_where_they_end() {
        let up = curve("up", &[(1, 1e3), (8, 8e3)]);
        let flat = curve("flat", &[(1, 1e3), (8, 1e3)]);
        let text = draw(&[up, flat], "tasks");
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].ends_with("up") && lines[0].contains("8.000 k"),
            "{text}"
        );
        let flat = lines.iter().position(|line| line.ends_with("flat"));
        assert!(flat.is_some_and(|row| row > lines.len() / 2), "{text}");
        assert!(!text.contains("logarithmic"));
    }

    #[test]
    fn rates_far_apart_are_drawn_by_their_logarithms() {
        let text = draw(&[curve("a", &[(1, 1.0), (2, 1e6)])], "CPUs");
        assert!(text.contains("logarithmic"), "{text}");
    }

    #[test]
    fn one_point_or_nothing_is_no_chart() {
        assert_eq!(draw(&[curve("a", &[(1, 5.0)])], "tasks"), "");
        assert_eq!(draw(&[], "tasks"), "");
    }
}
