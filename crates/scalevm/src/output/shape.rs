//! What a curve does, in words.

use super::short;

/// Within this share of the peak a point belongs to the plateau.
const PLATEAU: f64 = 0.05;
/// A curve that ends this share below its peak has collapsed.
const COLLAPSE: f64 = 0.20;

/// Names the peak, the plateau around it and the collapse behind it.
pub fn describe(curve: &[(usize, f64)]) -> Vec<String> {
    let mut lines = Vec::new();
    let Some((at, &(tasks, peak))) = curve
        .iter()
        .enumerate()
        .max_by(|a, b| a.1.1.total_cmp(&b.1.1))
    else {
        return lines;
    };
    let noun = if tasks == 1 { "task" } else { "tasks" };
    lines.push(format!("peak {} at {tasks} {noun}", short(peak)));
    if curve.len() < 2 || peak <= 0.0 {
        return lines;
    }
    let level = |point: &&(usize, f64)| point.1 >= (1.0 - PLATEAU) * peak;
    let first = curve[..at].iter().rev().take_while(level).last();
    let last = curve[at..].iter().take_while(level).last();
    let (from, to) = (first.map_or(tasks, |p| p.0), last.map_or(tasks, |p| p.0));
    if from != to {
        lines.push(format!("plateau from {from} to {to} tasks"));
    }
    let (end, rate) = curve[curve.len() - 1];
    if rate <= (1.0 - COLLAPSE) * peak {
        let left = 100.0 * rate / peak;
        let rate = short(rate);
        lines.push(format!(
            "collapse to {rate} at {end} tasks, {left:.0} % of the peak"
        ));
    }
    lines
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
        let expected = [
            "peak 1.719 M at 12 tasks",
            "plateau from 12 to 24 tasks",
            "collapse to 1.009 M at 96 tasks, 59 % of the peak",
        ];
        assert_eq!(describe(&curve), expected);
    }

    #[test]
    fn a_rising_curve_has_only_a_peak() {
        let expected = ["peak 4.000 at 4 tasks"];
        assert_eq!(describe(&[(1, 1.0), (2, 2.0), (4, 4.0)]), expected);
        assert_eq!(describe(&[(1, 2.0)]), ["peak 2.000 at 1 task"]);
        assert!(describe(&[]).is_empty());
    }
}
