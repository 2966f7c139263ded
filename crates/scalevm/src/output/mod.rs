//! The display of results: data on stdout, progress on stderr.

pub mod attribution;
pub mod campaign;
pub mod checks;
pub mod curves;
pub mod delays;
pub mod file;
pub mod format;
pub mod history;
pub mod incident;
pub mod json;
pub mod kernel;
pub mod lateness;
pub mod lines;
pub mod lock_json;
pub mod plot;
pub mod prediction;
pub mod profile;
pub mod progress;
pub mod recording;
pub mod reproduction;
pub mod shape;
pub mod simulated_locks;
pub mod sink;
pub mod table;
pub mod times;
pub mod top;
pub mod verdict;
pub mod whatif;

/// A rate in few characters: `1.719 M`, `341 k`.
pub fn short(rate: f64) -> String {
    if format::is_plain() {
        return rate.to_string();
    }
    let (value, unit) = match rate {
        r if r >= 999.5e6 => (r / 1e9, " G"),
        r if r >= 999.5e3 => (r / 1e6, " M"),
        r if r >= 999.5 => (r / 1e3, " k"),
        r => (r, ""),
    };
    let digits = match value {
        v if v < 9.9995 => 3,
        v if v < 99.995 => 2,
        v if v < 999.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{unit}")
}

/// A share as per cent, with one digit: `24.9 %`. For machines it stays a share.
pub fn percent(part: f64) -> String {
    if format::is_plain() {
        return part.to_string();
    }
    format!("{:.1} %", 100.0 * part)
}

/// A time in few characters: `1.719 ms`. For machines it is in seconds.
pub fn time(seconds: f64) -> String {
    if format::is_plain() {
        return seconds.to_string();
    }
    stats::duration(seconds)
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn four_figures_are_kept() {
        assert_eq!(short(1_719_000.0), "1.719 M");
        assert_eq!(short(341_234.0), "341.2 k");
        assert_eq!(short(999_499.0), "999.5 k");
        assert_eq!(short(999_999.0), "1.000 M");
        assert_eq!(short(12.345), "12.35");
        assert_eq!(short(0.0), "0.000");
    }
}
