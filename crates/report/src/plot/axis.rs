//! Axes: the positions of values, and round values to mark.

use maud::{Markup, html};
use stats::metric;

/// No axis extends beyond this.
const MOST: f64 = 1e100;

/// How values map to positions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences have equal distances.
    Linear,
    /// Equal ratios have equal distances.
    Logarithmic,
}

pub struct Axis {
    /// Its start in the picture.
    pub start: f64,
    /// Its end in the picture.
    pub end: f64,
    low: f64,
    high: f64,
    scale: Scale,
    ticks: Vec<f64>,
}

impl Axis {
    /// An axis for numbers of tasks, marked at the measured ones.
    pub fn of_tasks(tasks: &[u32], scale: Scale, (start, end): (f64, f64)) -> Self {
        let ends = tasks.first().zip(tasks.last());
        let (first, last) = ends.map_or((1.0, 2.0), |(&a, &b)| (f64::from(a), f64::from(b)));
        let low = match scale {
            Scale::Linear => 0.0,
            Scale::Logarithmic => first,
        };
        let mut axis = Axis {
            start,
            end,
            low,
            high: last.max(low + 1.0),
            scale,
            ticks: Vec::new(),
        };
        axis.ticks = axis.apart(tasks);
        axis
    }

    /// An axis for rates: from 0, or from a round value below the lowest.
    pub fn of_rates(low: f64, high: f64, scale: Scale, (start, end): (f64, f64)) -> Self {
        // Sums of damaged rates may be infinite; the number of marks must not be.
        let high = if high > 0.0 { high.min(MOST) } else { 1.0 };
        let low = if low > 0.0 {
            low.clamp(1.0 / MOST, high)
        } else {
            high
        };
        let ticks = match scale {
            Scale::Linear => linear_ticks(high),
            Scale::Logarithmic => logarithmic_ticks(low, high),
        };
        Axis {
            start,
            end,
            low: ticks.first().copied().unwrap_or(0.0),
            high: ticks.last().copied().unwrap_or(high),
            scale,
            ticks,
        }
    }

    /// The position of `value`; outside values map to the nearer end.
    pub fn at(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => {
                (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
            }
        };
        self.start + part.clamp(0.0, 1.0) * (self.end - self.start)
    }

    /// `count` values from the first to the last mark, at equal distances in the picture.
    pub fn steps(&self, from: f64, count: usize) -> impl Iterator<Item = f64> {
        let (from, to, scale) = (from, self.high, self.scale);
        (0..=count).map(move |step| {
            let part = step as f64 / count as f64;
            match scale {
                Scale::Linear => from + part * (to - from),
                Scale::Logarithmic => from * (to / from).powf(part),
            }
        })
    }

    /// The measured values whose labels do not touch; always includes the last.
    fn apart(&self, values: &[u32]) -> Vec<f64> {
        // The width of digits on a phone, where they are largest relative to the picture.
        const DIGIT: f64 = 9.0;
        const GAP: f64 = 6.0;
        let half = |value: f64| DIGIT / 2.0 * value.to_string().len() as f64;
        let Some((&last, others)) = values.split_last() else {
            return Vec::new();
        };
        let last = f64::from(last);
        let mut kept: Vec<f64> = Vec::new();
        for value in others.iter().map(|&value| f64::from(value)) {
            let room = |other: f64| half(value) + GAP + half(other);
            let clear = |other: f64| (self.at(value) - self.at(other)).abs() >= room(other);
            if kept.last().is_none_or(|&other| clear(other)) && clear(last) {
                kept.push(value);
            }
        }
        kept.push(last);
        kept
    }
}

/// Four to eight steps of 1, 2 or 5 from 0 to `high` or just above.
fn linear_ticks(high: f64) -> Vec<f64> {
    let rough = high / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|&step| step >= rough)
        .unwrap_or(rough);
    let count = (high / step - 1e-9).ceil().max(1.0) as usize;
    (0..=count).map(|index| index as f64 * step).collect()
}

/// Powers of ten, with 2 and 5 between them if they are few, around `low` to `high`.
fn logarithmic_ticks(low: f64, high: f64) -> Vec<f64> {
    let digits: &[f64] = match high / low {
        ratio if ratio > 300.0 => &[1.0],
        _ => &[1.0, 2.0, 5.0],
    };
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all: Vec<f64> = decades
        .flat_map(|decade| digits.iter().map(move |digit| digit * 10_f64.powi(decade)))
        .collect();
    let first = all.iter().rposition(|&tick| tick <= low * (1.0 + 1e-9));
    let last = all.iter().position(|&tick| tick >= high * (1.0 - 1e-9));
    let (first, last) = (first.unwrap_or(0), last.unwrap_or(all.len() - 1));
    // A scale needs two marks.
    let last = last.max(first + 1).min(all.len() - 1);
    all[first..=last].to_vec()
}

/// The lower axis, with marks, at height `y`.
pub fn horizontal(axis: &Axis, y: f64) -> Markup {
    html! {
        line.base x1=(axis.start) x2=(axis.end) y1=(y) y2=(y) {}
        @for tick in &axis.ticks {
            line.base x1=(round(axis.at(*tick))) x2=(round(axis.at(*tick))) y1=(y) y2=(y + 5.0) {}
            text.axis x=(round(axis.at(*tick))) y=(y + 19.0) text-anchor="middle" { (tick) }
        }
    }
}

/// The left axis, with grid lines from `left` to `right`.
pub fn vertical(axis: &Axis, left: f64, right: f64) -> Markup {
    html! {
        @for tick in &axis.ticks {
            line.grid x1=(left) x2=(right) y1=(round(axis.at(*tick))) y2=(round(axis.at(*tick))) {}
            text.axis x=(left - 8.0) y=(round(axis.at(*tick) + 4.0)) text-anchor="end" {
                (metric(*tick))
            }
        }
    }
}

/// Rounds to a tenth of a unit, which is finer than visible.
pub fn round(value: f64) -> f64 {
    (10.0 * value).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_hold_the_values() {
        assert_eq!(linear_ticks(9.7), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(linear_ticks(10.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(
            logarithmic_ticks(30.0, 400.0),
            [20.0, 50.0, 100.0, 200.0, 500.0]
        );
        assert_eq!(logarithmic_ticks(5.0, 5.0), [5.0, 10.0]);
        for high in [1e-3, 0.7, 1.0, 3.3, 99.9, 1.719e6, 8e12] {
            let ticks = linear_ticks(high);
            assert!((5..=9).contains(&ticks.len()), "{high}: {ticks:?}");
            assert!(*ticks.last().unwrap() >= high * (1.0 - 1e-8), "{ticks:?}");
            let ticks = logarithmic_ticks(high / 5000.0, high);
            let (first, last) = (ticks[0], ticks[ticks.len() - 1]);
            assert!(
                first <= high / 5000.0 * 1.001 && last >= high * 0.999,
                "{ticks:?}"
            );
        }
    }

    #[test]
    fn damaged_rates_have_an_axis_too() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for (low, high) in [
                (f64::INFINITY, 0.0),
                (1.0, f64::INFINITY),
                (5e-324, f64::MAX),
            ] {
                let axis = Axis::of_rates(low, high, scale, (200.0, 0.0));
                assert!((2..500).contains(&axis.ticks.len()), "{low} to {high}");
                assert!((0.0..=200.0).contains(&axis.at(1.0)), "{low} to {high}");
            }
        }
    }

    #[test]
    fn values_are_where_their_scale_says() {
        let linear = Axis::of_rates(1.0, 100.0, Scale::Linear, (200.0, 0.0));
        assert_eq!(
            [0.0, 50.0, 100.0, 1e9].map(|v| linear.at(v)),
            [200.0, 100.0, 0.0, 0.0]
        );
        let tasks = Axis::of_tasks(&[1, 2, 4, 96], Scale::Logarithmic, (0.0, 96.0));
        assert_eq!((tasks.at(1.0), tasks.at(96.0)), (0.0, 96.0));
        assert_eq!(tasks.ticks, [1.0, 4.0, 96.0], "2 would touch 1");
    }
}
