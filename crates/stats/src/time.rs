//! The time of a measurement.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// A wall-clock time in UTC, to the millisecond. Its text and JSON form is RFC 3339's
/// `2026-11-21T23:15:02.123Z`, whose alphabetical order is that of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    milliseconds: u64,
}

/// A text that is not a time.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a time, e.g. 2026-11-21T23:15:02.123Z, found `{0}`")]
pub struct TimeError(String);

/// The end of the year 9999, the last that the form can express.
const LAST: u64 = 253_402_300_799_999;

impl Time {
    /// The present.
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self::from_milliseconds(since.map_or(0, |since| since.as_millis() as u64))
    }

    /// The time that many milliseconds after the start of 1970; times beyond the form become the
    /// last within it.
    pub fn from_milliseconds(milliseconds: u64) -> Self {
        Self {
            milliseconds: milliseconds.min(LAST),
        }
    }

    /// Milliseconds since the start of 1970.
    pub fn milliseconds(self) -> u64 {
        self.milliseconds
    }

    fn system(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.milliseconds)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        humantime::format_rfc3339_millis(self.system()).fmt(out)
    }
}

impl FromStr for Time {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let parsed = humantime::parse_rfc3339(text).ok();
        let since = parsed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        since
            .map(|since| Self::from_milliseconds(since.as_millis() as u64))
            .ok_or_else(|| TimeError(text.into()))
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_milliseconds_are_the_same_time() {
        // Milliseconds as printed by `date -u +%s%3N`.
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_709_164_799_999, "2024-02-28T23:59:59.999Z"),
            (1_795_302_902_123, "2026-11-21T23:15:02.123Z"),
            (LAST, "9999-12-31T23:59:59.999Z"),
        ] {
            let time = Time::from_milliseconds(milliseconds);
            assert_eq!(time.to_string(), text);
            assert_eq!(text.parse(), Ok(time));
            assert_eq!(serde_json::to_string(&time).unwrap(), format!("\"{text}\""));
        }
        assert_eq!(Time::from_milliseconds(u64::MAX).milliseconds(), LAST);
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in [
            "",
            "yesterday",
            "2026-13-01T00:00:00Z",
            "1969-12-31T23:59:59Z",
        ] {
            assert_eq!(bad.parse::<Time>(), Err(TimeError(bad.into())), "{bad}");
        }
    }
}
