//! Why a curve bends: profiles at its peak and at its end, and the changes between.

use super::Sweep;
use crate::cli::{CommonArgs, watching};
use crate::commands::profile::files;
use crate::output::curves::Series;
use crate::output::{json, profile as output, progress};
use bench::profiling::Subject;
use bench::{Failure, Plan, System};
use profile::{Difference, Profile};

/// Profiles each curve where it is highest and where it ends, and prints the difference.
pub fn explain(sweep: &Sweep, series: &[Series], common: &CommonArgs) -> Result<(), Failure> {
    for (curve, one) in sweep.curves.iter().zip(series) {
        let mut profiles: Vec<(usize, Profile)> = Vec::new();
        let label = sweep.name(curve);
        for tasks in peak_and_end(&one.curve()) {
            let system = sweep.system(curve, tasks)?;
            let Some(profile) = subject(&system, curve.plan(tasks), common).profile()? else {
                return Ok(());
            };
            let label = format!("{label}, {}", curve.mode.count(tasks));
            tell(&label, &profile, common.json);
            profiles.push((tasks, profile));
        }
        if let [(few, peak), (many, end)] = profiles.as_slice() {
            let difference = Difference::of(peak, end);
            if common.json {
                println!("{}", files::difference_line(peak, end, &difference))
            } else {
                println!("{label}, from {few} to {many} {}:", curve.mode.name());
                output::print_difference(&difference);
            }
        }
    }
    Ok(())
}

/// The numbers of tasks at which a curve is highest and at which it ends.
fn peak_and_end(curve: &[(usize, f64)]) -> Vec<usize> {
    let peak = curve.iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let mut ends: Vec<usize> = peak
        .into_iter()
        .chain(curve.last())
        .map(|one| one.0)
        .collect();
    ends.dedup();
    ends
}

fn subject<'a>(system: &'a System, plan: Plan, common: &CommonArgs) -> Subject<'a> {
    Subject {
        system,
        plan,
        schedule: watching(common, system.on()),
        options: perf::Options::default(),
        machine: json::machine,
        bars: progress::bar,
    }
}

fn tell(label: &str, profile: &Profile, json: bool) {
    if json {
        println!("{}", files::line(profile))
    } else {
        println!("{label}: bottleneck: {}", profile.bottleneck)
    }
    output::notes(&profile.notes);
}

#[cfg(test)]
mod tests {
    use super::peak_and_end;

    #[test]
    fn a_curve_that_rises_to_its_end_has_one_place() {
        assert_eq!(peak_and_end(&[(1, 1.0), (2, 3.0), (4, 2.0)]), [2, 4]);
        assert_eq!(peak_and_end(&[(1, 1.0), (2, 3.0)]), [2]);
        assert!(peak_and_end(&[]).is_empty());
    }
}
