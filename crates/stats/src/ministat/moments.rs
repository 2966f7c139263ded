//! Mean, deviation and median, at any size of the numbers.
//!
//! Squares overflow from 1e154 on, vanish below 1e-162, and a sum of two large numbers may
//! overflow, too. So each sum is taken of numbers that a power of two has brought near 1, which
//! changes no digit of them.

/// The largest power of two that is not above the greatest of `numbers`, or 1 if all are 0.
pub(crate) fn scale<'a>(numbers: impl IntoIterator<Item = &'a f64>) -> f64 {
    let most = numbers
        .into_iter()
        .fold(0.0_f64, |most, number| most.max(number.abs()));
    let bits = most.to_bits();
    match most {
        0.0 => 1.0,
        _ if most.is_normal() => f64::from_bits(bits & f64::INFINITY.to_bits()),
        // Below the normal numbers the bits are the number, in units of 2^-1074.
        _ => f64::from_bits(1 << bits.ilog2()),
    }
}

/// `numbers`, divided by their common `scale`.
pub(crate) fn scaled(numbers: &[f64], scale: f64) -> Vec<f64> {
    numbers.iter().map(|number| number / scale).collect()
}

/// The middle of `sorted`, or the mean of the middle two.
pub(crate) fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => sorted[middle - 1].midpoint(sorted[middle]),
        _ => sorted[middle],
    }
}

/// The arithmetic mean of finite numbers, which is finite; NaN without numbers.
pub fn mean(points: &[f64]) -> f64 {
    let scale = scale(points);
    let mean = points.iter().map(|value| value / scale).sum::<f64>() / points.len() as f64;
    let (low, high) = points
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
            (low.min(value), high.max(value))
        });
    if points.is_empty() {
        return f64::NAN;
    }
    // Rounding may bring the mean of equal numbers beyond them, and the largest is near infinity.
    (mean * scale).clamp(low, high)
}

/// The unbiased variance; infinite if it is above the largest number, though the deviation may be
/// far below it.
///
/// Computed from deviations and not as the difference of two large sums, which would keep few
/// digits for throughputs in the millions.
pub fn variance(points: &[f64]) -> f64 {
    let scale = scale(points);
    variance_near_1(&scaled(points, scale)) * scale * scale
}

/// The square root of the unbiased variance. Infinite only if the numbers lie on both sides of 0
/// near the largest number.
pub fn stddev(points: &[f64]) -> f64 {
    let scale = scale(points);
    variance_near_1(&scaled(points, scale)).sqrt() * scale
}

/// The unbiased variance of numbers whose squares neither overflow nor vanish.
fn variance_near_1(points: &[f64]) -> f64 {
    let mean = mean(points);
    let squares = points.iter().map(|value| (value - mean).powi(2));
    squares.sum::<f64>() / (points.len() as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_is_the_power_of_two_below() {
        let least = f64::from_bits(1);
        for (number, power) in [
            (1.0, 1.0),
            (1.99, 1.0),
            (-3.0, 2.0),
            (f64::MAX, 2.0_f64.powi(1023)),
            (3.0 * least, 2.0 * least),
            (least, least),
            (0.0, 1.0),
        ] {
            assert_eq!(scale(&[number]), power, "{number}");
        }
    }

    #[test]
    fn moments_do_not_depend_on_the_unit() {
        // Mean 10.5, deviation √30: also where squares or sums are no doubles.
        let points = [4.5, 7.5, 13.5, 16.5];
        for exponent in [-1060, -600, -3, 0, 9, 600, 1019] {
            let unit = 2.0_f64.powi(exponent.max(-1000)) * 2.0_f64.powi((exponent + 1000).min(0));
            let points = points.map(|point| point * unit);
            assert_eq!(mean(&points), 10.5 * unit, "2^{exponent}");
            assert!(
                (stddev(&points) / unit - 30.0_f64.sqrt()).abs() < 1e-3,
                "2^{exponent}"
            );
            assert_eq!(median(&points), 10.5 * unit, "2^{exponent}");
        }
    }

    #[test]
    fn the_ends_of_the_numbers_are_numbers() {
        let most = [f64::MAX; 6];
        assert_eq!((mean(&most), stddev(&most)), (f64::MAX, 0.0));
        let least = [f64::from_bits(1); 6];
        assert_eq!(
            (mean(&least), stddev(&least), median(&least)),
            (least[0], 0.0, least[0])
        );
        assert_eq!(mean(&[f64::MAX, -f64::MAX]), 0.0);
        assert_eq!(median(&[-f64::MAX, f64::MAX]), 0.0);
        assert_eq!(mean(&[0.0, -0.0, 0.0]), 0.0);
        assert!(mean(&[]).is_nan());
    }

    #[test]
    fn variance_keeps_its_digits_far_from_zero() {
        let far = [1e12 + 4.0, 1e12 + 7.0, 1e12 + 13.0, 1e12 + 16.0];
        assert_eq!((mean(&far), variance(&far)), (1e12 + 10.0, 30.0));
    }
}
