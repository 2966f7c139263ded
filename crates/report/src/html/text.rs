//! Numbers as text for readers.

/// A share: `38.2 %`.
pub fn percent(part: f64) -> String {
    match (100.0 * part).abs() {
        p if p > 0.0 && p < 0.05 => "< 0.1 %".into(),
        p if p >= 99.95 => format!("{:.0} %", 100.0 * part),
        _ => format!("{:.1} %", 100.0 * part),
    }
}

/// A time: `2.31 s`, `131 ms`, `4.20 µs`.
pub fn seconds(value: f64) -> String {
    let (value, unit) = match value {
        v if v == 0.0 || v >= 1.0 => (v, "s"),
        v if v >= 1e-3 => (1e3 * v, "ms"),
        v if v >= 1e-6 => (1e6 * v, "µs"),
        v => (1e9 * v, "ns"),
    };
    let digits = match value {
        0.0 => 0,
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.digits$} {unit}")
}

/// A whole number with its thousands separated.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_few() {
        assert_eq!(
            [0.382, 0.0, 0.0001, 1.0].map(percent),
            ["38.2 %", "0.0 %", "< 0.1 %", "100 %"]
        );
        let times = [0.0, 2.31, 0.131, 4.2e-6, 120.0, 5e-9].map(seconds);
        assert_eq!(
            times,
            ["0 s", "2.31 s", "131 ms", "4.20 µs", "120 s", "5.00 ns"]
        );
        assert_eq!(
            [7, 1000, 39_656, 1_234_567].map(grouped),
            ["7", "1,000", "39,656", "1,234,567"]
        );
    }
}
