//! A curve's shape, in words: peak, plateau, knee, collapse, and the law it follows.

use super::short;
use serde_json::{Value, json};
use stats::curve::{Curve, Point};
use stats::usl::Law;

/// Names the features of `curve` (tasks and operations a second). Two points make a
/// curve; the law takes four.
pub fn describe(curve: &[(usize, f64)]) -> Vec<String> {
    let points = points(curve);
    let Ok(curve) = Curve::of(&points) else {
        return Vec::new(); // the table holds the one point, or the zero
    };
    let peak = curve.peak;
    let noun = if peak.cpus == 1 { "task" } else { "tasks" };
    let mut lines = vec![format!(
        "peak {} at {} {noun}",
        short(peak.throughput),
        peak.cpus
    )];
    let (from, to) = curve.plateau;
    if from != to {
        lines.push(format!("plateau from {from} to {to} tasks"));
    }
    if let Some(knee) = curve.knee {
        lines.push(format!(
            "knee at {} tasks: a task yields {:.0} % of what it yields at {}",
            knee.cpus,
            100.0 * curve.efficiency(knee),
            curve.points[0].cpus
        ));
    }
    if let Some(collapse) = curve.collapse {
        let lowest = collapse.lowest;
        lines.push(format!(
            "collapse from {} tasks on, to {} at {}, {:.0} % of the peak",
            collapse.from.cpus,
            short(lowest.throughput),
            lowest.cpus,
            100.0 * lowest.throughput / peak.throughput
        ));
    }
    lines.extend(law(&points).map(|law| law_line(&law)));
    lines
}

/// The number of tasks at the curve's knee, if it has one.
pub fn knee(curve: &[(usize, f64)]) -> Option<u32> {
    Some(Curve::of(&points(curve)).ok()?.knee?.cpus)
}

/// The curve's shape as JSON; none for fewer than two points.
pub fn json(curve: &[(usize, f64)]) -> Option<Value> {
    let points = points(curve);
    let curve = Curve::of(&points).ok()?;
    let place = |point: Point| json!({ "tasks": point.cpus, "rate": point.throughput });
    let law = law(&points).map(|law| {
        json!({
            "lambda": law.lambda,
            "sigma": law.sigma,
            "kappa": law.kappa,
            "peak": law.peak(),
            "r_squared": law.r_squared,
        })
    });
    Some(json!({
        "peak": place(curve.peak),
        "plateau": [curve.plateau.0, curve.plateau.1],
        "knee": curve.knee.map(place),
        "collapse": curve.collapse.map(|collapse| json!({
            "from": place(collapse.from),
            "lowest": place(collapse.lowest),
        })),
        "usl": law,
    }))
}

fn points(curve: &[(usize, f64)]) -> Vec<Point> {
    let point = |&(tasks, throughput): &(usize, f64)| Point {
        cpus: u32::try_from(tasks).unwrap_or(u32::MAX),
        throughput,
    };
    curve.iter().map(point).collect()
}

/// The law of more than three points: three fit its three parameters whatever they are.
fn law(points: &[Point]) -> Option<Law> {
    let enough = points.len() > 3;
    Law::fit(points).ok().filter(|_| enough)
}

fn law_line(law: &Law) -> String {
    let Law {
        lambda,
        sigma,
        kappa,
        r_squared,
    } = law;
    let mut line = format!(
        "USL: {} a task alone, contention {sigma:.4}, coherence {kappa:.6}",
        short(*lambda)
    );
    match law.peak() {
        Some(tasks) => line += &format!(", best at {tasks:.1} tasks"),
        None => line += ", grows for ever",
    }
    if let Some(r_squared) = r_squared {
        line += &format!(" (R² = {r_squared:.3})");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn peak_plateau_and_collapse_of_seed_000() {
        let curve = [
            (1, 0.30e6),
            (12, 1.719e6),
            (24, 1.70e6),
            (48, 1.3e6),
            (96, 1.009e6),
        ];
        let lines = describe(&curve);
        let expected = [
            "peak 1.719 M at 12 tasks",
            "plateau from 12 to 24 tasks",
            "knee at 12 tasks: a task yields 48 % of what it yields at 1",
            "collapse from 48 tasks on, to 1.009 M at 96, 59 % of the peak",
        ];
        assert_eq!(lines[..4], expected);
        assert!(lines[4].starts_with("USL: ") && lines[4].contains(", best at "));
        assert_eq!(lines.len(), 5, "{lines:?}");
    }

    #[test]
    fn a_rising_curve_has_only_a_peak_and_a_law() {
        let lines = describe(&[(1, 1.0), (2, 2.0), (4, 4.0), (8, 8.0)]);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[0], "peak 8.000 at 8 tasks");
        assert!(lines[1].contains("contention 0.0000"), "{lines:?}");
        assert_eq!(describe(&[(1, 2.0), (2, 3.0)]), ["peak 3.000 at 2 tasks"]);
        let three = describe(&[(1, 1.0), (2, 2.0), (4, 4.0)]);
        assert_eq!(three.len(), 1, "three points fit any law: {three:?}");
    }

    #[test]
    fn json_says_the_same() {
        let curve = [(1, 1.0), (2, 1.8), (4, 2.0), (8, 1.0)];
        let json = super::json(&curve).expect("a curve");
        assert_eq!(json["peak"]["tasks"], 4);
        assert_eq!(json["knee"]["tasks"], 8);
        assert_eq!(json["collapse"]["lowest"]["rate"], 1.0);
        assert!(json["usl"]["sigma"].is_number());
        assert!(super::json(&curve[..1]).is_none());
    }

    #[test]
    fn less_than_two_points_are_no_curve() {
        assert!(describe(&[(1, 2.0)]).is_empty());
        assert!(describe(&[]).is_empty());
        assert!(describe(&[(1, 0.0), (2, 1.0)]).is_empty());
    }
}
