//! The marks of a series.

use super::axis::{Axis, round};
use crate::page::{Dot, Series};
use maud::{Markup, html};
use stats::{count, metric};

/// Steps of a fitted curve.
const STEPS: usize = 64;
/// Half the width of a point.
const POINT: f64 = 4.0;

/// The interval around the means.
pub fn band(series: &Series, x: &Axis, y: &Axis) -> Markup {
    let banded = || {
        let dots = series.dots.iter();
        dots.filter_map(|dot| Some((f64::from(dot.tasks), dot.band?)))
    };
    let upper = banded().map(|(tasks, band)| (tasks, band.1));
    let lower: Vec<(f64, f64)> = banded().map(|(tasks, band)| (tasks, band.0)).collect();
    let outline = path(upper.chain(lower.into_iter().rev()), x, y);
    html! {
        @if banded().count() > 1 { polygon.band points=(outline) {} }
        @else {
            @for (tasks, band) in banded() {
                line.whisker x1=(round(x.at(tasks))) x2=(round(x.at(tasks)))
                    y1=(round(y.at(band.0))) y2=(round(y.at(band.1))) {}
            }
        }
    }
}

/// The law, dashed.
pub fn law(series: &Series, x: &Axis, y: &Axis) -> Markup {
    let Some((law, first)) = series.law.as_ref().zip(series.dots.first()) else {
        return html! {};
    };
    let steps = x.steps(f64::from(first.tasks), STEPS);
    let points = path(steps.map(|tasks| (tasks, law.throughput(tasks))), x, y);
    html! {
        polyline.law points=(points) { title { (series.name) ": Universal Scalability Law" } }
    }
}

/// The line from mean to mean.
pub fn line(series: &Series, x: &Axis, y: &Axis) -> Markup {
    let dots = series.dots.iter();
    let points = path(dots.map(|dot| (f64::from(dot.tasks), dot.rate)), x, y);
    html! { polyline.line points=(points) {} }
}

/// The means, each with a description. Shapes tell series apart where colours do not.
pub fn dots(series: &Series, x: &Axis, y: &Axis) -> Markup {
    html! {
        @for dot in &series.dots {
            @let (right, down) = (round(x.at(f64::from(dot.tasks))), round(y.at(dot.rate)));
            path.dot d=(shape(series.colour, right, down)) {
                title { (describe(series, dot)) }
            }
        }
    }
}

fn describe(series: &Series, dot: &Dot) -> String {
    let (name, tasks) = (&series.name, &dot.tasks);
    let band = dot.band.map_or(String::new(), |(low, high)| {
        format!(" ({} to {})", metric(low), metric(high))
    });
    format!(
        "{name}, {}: {}{band}",
        count(*tasks, "task"),
        metric(dot.rate)
    )
}

/// A circle, a square, a triangle or a diamond.
fn shape(index: usize, x: f64, y: f64) -> String {
    let r = POINT;
    match index % 4 {
        0 => format!(
            "M{} {y}a{r} {r} 0 1 0 {} 0a{r} {r} 0 1 0 {} 0z",
            round(x - r),
            2.0 * r,
            -2.0 * r
        ),
        1 => format!(
            "M{} {}h{s}v{s}h-{s}z",
            round(x - r),
            round(y - r),
            s = 2.0 * r
        ),
        2 => format!("M{} {}l{r} {h}h-{h}z", x, round(y - r), h = 2.0 * r),
        _ => format!("M{x} {}l{r} {r}l-{r} {r}l-{r} -{r}z", round(y - r)),
    }
}

/// Rings around the features: the peak, the knee, and where it collapses.
pub fn features(series: &Series, x: &Axis, y: &Axis) -> Markup {
    let Some(shape) = &series.shape else {
        return html! {};
    };
    let last = shape.points.last().map(|point| point.cpus);
    let turned = Some(shape.peak).filter(|peak| Some(peak.cpus) != last);
    let collapse = shape.collapse.map(|collapse| collapse.from);
    let all = [
        ("peak", turned),
        ("knee", shape.knee),
        ("collapse", collapse),
    ];
    html! {
        @for (what, point) in all.into_iter().filter_map(|(what, point)| Some((what, point?))) {
            circle class=(what) cx=(round(x.at(f64::from(point.cpus))))
                cy=(round(y.at(point.throughput))) r="8" {
                title {
                    (series.name) ": " (what) " at " (count(point.cpus, "task")) ", "
                    (metric(point.throughput))
                }
            }
        }
    }
}

fn path(points: impl Iterator<Item = (f64, f64)>, x: &Axis, y: &Axis) -> String {
    let point = |(tasks, rate)| format!("{},{}", round(x.at(tasks)), round(y.at(rate)));
    points.map(point).collect::<Vec<_>>().join(" ")
}
