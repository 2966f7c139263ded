//! Numbers as text: C's `%g`, metric prefixes, and how many of what.

use std::fmt::Display;

/// `value` as C's `printf("%.{precision}g")` prints it: `precision` significant digits, no trailing
/// zeros, an exponent when it is below -4 or not below the precision. ministat's figures have this
/// form.
pub fn general(value: f64, precision: usize) -> String {
    if !value.is_finite() {
        return format!("{value}").to_lowercase();
    }
    let digits = precision.max(1);
    // The exponent after rounding to the requested digits: 999999.5 is 1e+06 at six digits.
    let scientific = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!(
            "{}e{sign}{:02}",
            without_trailing_zeros(mantissa),
            exponent.abs()
        );
    }
    let decimals = (digits as i32 - 1 - exponent) as usize;
    without_trailing_zeros(&format!("{value:.decimals$}")).to_string()
}

/// `value` as [`general`] prints it, or that it is beyond the largest number.
pub fn figure(value: f64, precision: usize) -> String {
    match value.is_infinite() {
        true if value > 0.0 => format!(">{}", general(f64::MAX, precision)),
        true => format!("<{}", general(f64::MIN, precision)),
        false => general(value, precision),
    }
}

/// A ratio with four decimals; with five significant digits where these would show nothing or a row
/// of them.
pub fn ratio(value: f64) -> String {
    if (1e-3..1e6).contains(&value) {
        format!("{value:.4}")
    } else {
        general(value, 5)
    }
}

/// `value` with four significant digits and a metric prefix: `1.719 M`, `412.3 k`, `17.5`.
pub fn metric(value: f64) -> String {
    const PREFIXES: [(f64, &str); 4] = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    // Chooses the prefix of the rounded number, so that 999,999 becomes 1 M and not 1000 k.
    let rounded: f64 = format!("{value:.3e}").parse().unwrap_or(value);
    let (unit, prefix) = PREFIXES
        .into_iter()
        .find(|(unit, _)| rounded.abs() >= *unit)
        .unwrap_or((1.0, ""));
    format!("{}{prefix}", general(rounded / unit, 4))
}

/// A time with three significant digits and its unit: `1.72 ms`, `12.3 µs`, `131 s`.
pub fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 7200.0 => (s / 3600.0, "h"),
        s if s >= 120.0 => (s / 60.0, "min"),
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "µs"),
        s => (s * 1e9, "ns"),
    };
    match value {
        v if v >= 99.95 => format!("{v:.0} {unit}"),
        v if v >= 9.995 => format!("{v:.1} {unit}"),
        v => format!("{v:.2} {unit}"),
    }
}

/// `1 run`, `2 runs`: of what has a plural in -s.
pub fn count<N: Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let ending = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

fn without_trailing_zeros(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_no_plural() {
        let all = [0_u64, 1, 2].map(|number| count(number, "task"));
        assert_eq!(all, ["0 tasks", "1 task", "2 tasks"]);
    }

    #[test]
    fn general_is_c_printf() {
        // value, %.8g, %g: as C's printf prints them.
        let table = [
            (0.0, "0", "0"),
            (-1.0, "-1", "-1"),
            (1008730.8, "1008730.8", "1.00873e+06"),
            (2895.1156123, "2895.1156", "2895.12"),
            (1e8, "1e+08", "1e+08"),
            (123456789.0, "1.2345679e+08", "1.23457e+08"),
            (99999999.5, "1e+08", "1e+08"),
            (0.0001, "0.0001", "0.0001"),
            (0.00001, "1e-05", "1e-05"),
            (0.00012345678912, "0.00012345679", "0.000123457"),
            (1e100, "1e+100", "1e+100"),
            (-2.5e-7, "-2.5e-07", "-2.5e-07"),
            (999999.5, "999999.5", "1e+06"),
            (100000.0, "100000", "100000"),
            (f64::INFINITY, "inf", "inf"),
            (f64::NAN, "nan", "nan"),
        ];
        for (value, eight, six) in table {
            assert_eq!(
                (general(value, 8), general(value, 6)),
                (eight.into(), six.into()),
                "{value}"
            );
        }
    }

    #[test]
    fn what_is_beyond_the_numbers_says_so() {
        assert_eq!(figure(f64::INFINITY, 6), ">1.79769e+308");
        assert_eq!(figure(f64::NEG_INFINITY, 6), "<-1.79769e+308");
        assert_eq!(figure(2.5, 6), "2.5");
    }

    #[test]
    fn a_ratio_has_digits_at_any_size() {
        let all = [1.0, 0.5125, 1234.5, 1e300, 2.5e-9].map(ratio);
        assert_eq!(all, ["1.0000", "0.5125", "1234.5000", "1e+300", "2.5e-09"]);
    }

    #[test]
    fn durations_have_three_figures() {
        assert_eq!(duration(0.131), "131 ms");
        assert_eq!(duration(3.3e-6), "3.30 µs");
        assert_eq!(duration(0.01234), "12.3 ms");
        assert_eq!(duration(2.0), "2.00 s");
        assert_eq!(duration(384.0), "6.40 min");
        assert_eq!(duration(9000.0), "2.50 h");
        assert_eq!(duration(0.0), "0.00 ns");
    }

    #[test]
    fn metric_keeps_four_digits() {
        for (value, text) in [
            (1719430.0, "1.719 M"),
            (412_340.0, "412.3 k"),
            (17.5, "17.5"),
            (0.0, "0"),
            (999_999.0, "1 M"),
            (-2e9, "-2 G"),
        ] {
            assert_eq!(metric(value), text);
        }
    }
}
