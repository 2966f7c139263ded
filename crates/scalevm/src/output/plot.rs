//! Curves in the terminal.

use super::short;
use crate::commands::sweep::Series;
use std::fmt::Write;
use textplots::{Chart, Plot, Shape};

/// Size of a chart in dots; a character has 2 × 4.
const WIDTH: u32 = 140;
const HEIGHT: u32 = 48;

/// What is drawn.
pub struct Curve {
    /// Its title.
    pub label: String,
    /// Tasks and operations a second.
    pub points: Vec<(usize, f64)>,
}

/// A chart for each curve of two points or more, all to one scale.
pub fn curves(series: &[Series]) -> String {
    let curve = |one: &Series| Curve {
        label: one.label.clone(),
        points: one.curve(),
    };
    draw(&series.iter().map(curve).collect::<Vec<_>>(), "tasks")
}

/// The same of curves over the number of `what`.
pub fn draw(curves: &[Curve], what: &str) -> String {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most_tasks = points().map(|point| point.0).max().unwrap_or(0);
    let highest = points().map(|point| point.1).fold(0.0, f64::max);
    let mut text = String::new();
    if highest <= 0.0 {
        return text;
    }
    for one in curves {
        if one.points.len() < 2 {
            continue;
        }
        let dots: Vec<(f32, f32)> = one
            .points
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
            "0 {what}{:>width$}",
            most_tasks,
            width = WIDTH as usize / 2 - 2 - what.len()
        );
    }
    text
}
