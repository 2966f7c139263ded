//! Changes are found where they are, and nowhere else.

use oorandom::Rand32;
use stats::change::{Change, Options, changes};

/// Runs with a deviation of 1, about normal, at each level in turn.
fn series(seed: u64, levels: &[(usize, f64)]) -> Vec<f64> {
    let mut random = Rand32::new(seed);
    let mut noise = || (0..12).map(|_| f64::from(random.rand_float())).sum::<f64>() - 6.0;
    let mut runs = Vec::new();
    for &(count, level) in levels {
        runs.extend((0..count).map(|_| level + noise()));
    }
    runs
}

fn found(runs: &[f64]) -> Vec<Change> {
    changes(runs, &Options::default())
}

/// Each change within `slack` runs of where it was made.
fn near(found: &[Change], made: &[usize], slack: usize) -> bool {
    found.len() == made.len()
        && found
            .iter()
            .zip(made)
            .all(|(change, &at)| change.at.abs_diff(at) <= slack)
}

#[test]
fn a_shift_is_found_where_it_is() {
    for (before, after) in [(10, 10), (20, 40), (40, 6)] {
        let mut exact = 0;
        for seed in 0..100 {
            let found = found(&series(seed, &[(before, 100.0), (after, 106.0)]));
            // Noise at the border may be closer to the other level.
            let change = found.iter().find(|change| change.at.abs_diff(before) <= 1);
            let change = change.unwrap_or_else(|| panic!("seed {seed}: {found:?}"));
            assert!(
                (change.ratio() - 1.06).abs() < 0.03 && change.p <= 0.05,
                "{found:?}"
            );
            exact += usize::from(near(&found, &[before], 0));
        }
        // Both sides are searched too, and each may give a false alarm at 5 %.
        assert!(exact >= 85, "{exact} of 100: {before} and {after} runs");
    }
}

#[test]
fn a_shift_of_two_deviations_is_found_about_where_it_is() {
    let hits = (0..50)
        .filter(|&seed| near(&found(&series(seed, &[(25, 100.0), (25, 98.0)])), &[25], 3))
        .count();
    assert!(hits >= 40, "{hits} of 50");
}

#[test]
fn noise_has_changes_as_rarely_as_promised() {
    // Without a minimum effect: it would hide most false alarms.
    let options = Options {
        minimum_effect: 0.0,
        orders: 199,
        ..Options::default()
    };
    let mut all = 0;
    for length in [8, 12, 30, 60] {
        let noisy = |&seed: &u64| {
            let runs = series(1000 * length as u64 + seed, &[(length, 100.0)]);
            !changes(&runs, &options).is_empty()
        };
        let alarms = (0..200).filter(noisy).count();
        // At 5 %, more than 18 of 200 occur in one case of a hundred.
        assert!(alarms <= 18, "{alarms} of 200 series of {length} runs");
        all += alarms;
    }
    // A test that never alarms would pass the above.
    assert!(all >= 10, "{all} of 800");
}

#[test]
fn two_shifts_are_found_also_if_the_second_takes_the_first_back() {
    for levels in [
        [(20, 100.0), (20, 106.0), (20, 112.0)],
        [(20, 100.0), (20, 106.0), (20, 100.0)],
        [(40, 100.0), (10, 94.0), (40, 100.0)],
    ] {
        let made = [levels[0].0, levels[0].0 + levels[1].0];
        let mut exact = 0;
        for seed in 0..50 {
            let found = found(&series(seed, &levels));
            for at in made {
                assert!(
                    found.iter().any(|change| change.at == at),
                    "seed {seed}: {found:?}"
                );
            }
            exact += usize::from(near(&found, &made, 0));
        }
        assert!(exact >= 40, "{exact} of 50: {levels:?}");
    }
}

#[test]
fn outliers_are_no_change() {
    let mut runs = series(3, &[(30, 100.0)]);
    runs[10] = 20.0;
    runs[20] = 15.0;
    runs[21] = 500.0;
    assert_eq!(found(&runs), []);
}

#[test]
fn what_does_not_matter_is_not_reported() {
    let runs: Vec<f64> = series(1, &[(20, 1000.0), (20, 1006.0)]);
    assert_eq!(found(&runs), [], "0.6 % is below the minimum effect");
    let strict = Options {
        minimum_effect: 0.001,
        ..Options::default()
    };
    assert!(near(&changes(&runs, &strict), &[20], 0));
}

#[test]
fn few_or_equal_runs_show_nothing_and_the_fewest_show_a_clean_step() {
    assert_eq!(found(&[]), []);
    assert_eq!(found(&[1.0]), []);
    assert_eq!(found(&[5.0; 50]), []);
    let step = |before: usize, after: usize| {
        let mut runs: Vec<f64> = (0..before).map(|run| 100.0 + run as f64).collect();
        runs.extend((0..after).map(|run| 200.0 - run as f64));
        runs
    };
    assert_eq!(found(&step(3, 3)), []);
    assert!(near(&found(&step(4, 4)), &[4], 0));
    assert!(near(&found(&step(5, 4)), &[5], 0));
}

#[test]
fn the_same_series_has_the_same_changes() {
    let runs = series(11, &[(15, 100.0), (15, 104.0)]);
    assert_eq!(found(&runs), found(&runs));
    // In another unit, too.
    let scaled: Vec<f64> = runs.iter().map(|run| run * 1e6).collect();
    let places = |found: Vec<Change>| {
        found
            .iter()
            .map(|change| (change.at, change.p))
            .collect::<Vec<_>>()
    };
    assert_eq!(places(found(&runs)), places(found(&scaled)));
}

#[test]
fn changes_have_figures_at_the_ends_of_the_numbers() {
    for unit in [1e-306, 1e300, 1.5e305] {
        let runs: Vec<f64> = series(11, &[(15, 100.0), (15, 104.0)])
            .iter()
            .map(|run| run * unit)
            .collect();
        let found = found(&runs);
        assert!(near(&found, &[15], 0), "{unit:e}: {found:?}");
        assert!((found[0].before / (100.0 * unit) - 1.0).abs() < 0.02);
    }
    let stopped: Vec<f64> = [[100.0; 12], [0.0; 12]].concat();
    let found = found(&stopped);
    assert_eq!((found[0].at, found[0].ratio()), (12, 0.0));
}
