//! S6: before and after with confidence, as ministat prints them (case study 000's table).

use super::harness::TOTALS;
use super::{Aim, Lab, Row, System};
use bench::Failure;
use bench::simulated::Band;
use stats::general;
use stats::ministat::{Confidence, Dataset, Difference};

pub const SYSTEM: System = System {
    name: "S6",
    about: "ministat: the case study's samples give its table, digit by digit",
    machines: &["freebsd-96"],
    rows,
    beyond: &[],
};

const TABLE: &str = "case study 000's table";

fn rows(_: &Lab) -> Result<Vec<Row>, Failure> {
    let [before, after] = TOTALS;
    let before = Dataset::new("before", before.to_vec())?;
    let after = Dataset::new("after", after.to_vec())?;
    let difference = Difference::between(&before, &after, Confidence::P95);
    let table = [
        ("average before", 1_008_730.8, before.mean(), 8),
        ("median before", 1_009_119.0, before.median(), 8),
        ("standard deviation before", 2895.1156, before.stddev(), 8),
        ("average after", 3_550_909.0, after.mean(), 8),
        ("median after", 3_552_085.0, after.median(), 8),
        ("standard deviation after", 2039.8783, after.stddev(), 8),
        ("difference", 2.54218e6, difference.absolute, 6),
        ("+/-", 3652.34, difference.absolute_error, 6),
        ("difference, %", 252.018, difference.percent, 6),
        ("+/-, %", 1.06257, difference.percent_error, 6),
        ("pooled s", 2504.28, difference.pooled, 6),
    ];
    let row = |(what, figure, value, digits)| {
        let aim = Aim::Published {
            figure,
            quote: TABLE,
            band: Band::EXACT,
        };
        Row::known(what, aim, as_printed(value, digits))
    };
    Ok(table.into_iter().map(row).collect())
}

/// The number that `digits` significant digits print.
fn as_printed(value: f64, digits: usize) -> f64 {
    general(value, digits).parse().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::super::Effort;
    use super::*;
    use sim::profile::MachineProfile;

    #[test]
    fn every_digit_of_the_table_is_the_seeds() {
        let machine = MachineProfile::named("freebsd-96").unwrap();
        let rows = rows(&Lab::new(machine, Effort::quick(1))).unwrap();
        assert_eq!(rows.len(), 11);
        for row in rows {
            assert_eq!(row.aim.figure(), Some(row.ours.median), "{}", row.what);
        }
        assert_eq!(as_printed(2504.2849, 6), 2504.28);
    }
}
