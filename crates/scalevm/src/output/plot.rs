//! Curves in the terminal.

use super::short;
use crate::commands::sweep::Series;
use std::fmt::Write;
use textplots::{Chart, Plot, Shape};

/// Size of a chart in dots; a character has 2 × 4.
const WIDTH: u32 = 140;
const HEIGHT: u32 = 48;

/// A chart for each curve of two points or more, all to one scale.
pub fn curves(series: &[Series]) -> String {
    let curves: Vec<_> = series.iter().map(Series::curve).collect();
    let points = || curves.iter().flatten();
    let most_tasks = points().map(|point| point.0).max().unwrap_or(0);
    let highest = points().map(|point| point.1).fold(0.0, f64::max);
    let mut text = String::new();
    if highest <= 0.0 {
        return text;
    }
    for (one, curve) in series.iter().zip(&curves) {
        if curve.len() < 2 {
            continue;
        }
        let dots: Vec<(f32, f32)> = curve
            .iter()
            .map(|&(tasks, rate)| (tasks as f32, rate as f32))
            .collect();
        let shape = Shape::Lines(&dots);
        let mut chart =
            Chart::new_with_y_range(WIDTH, HEIGHT, 0.0, most_tasks as f32, 0.0, highest as f32);
        let chart = chart.lineplot(&shape);
        chart.borders();
        chart.figures();
        let _ = writeln!(text, "{}", one.label); // a String takes everything
        let picture = chart.frame();
        for (row, line) in picture.lines().enumerate() {
            let label = if row == 0 {
                short(highest)
            } else {
                String::new()
            };
            let _ = writeln!(text, "{line} {label}");
        }
        let _ = writeln!(
            text,
            "0 tasks{:>width$}",
            most_tasks,
            width = WIDTH as usize / 2 - 7
        );
    }
    text
}
