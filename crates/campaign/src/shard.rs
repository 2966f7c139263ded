//! Parts of a campaign that run concurrently.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// Every `of`th point, from a first one on: costs rise along the axes, so neighbours go to
/// different shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// The shard's number, from 1.
    index: usize,
    /// The number of shards.
    of: usize,
}

impl Shard {
    /// All points.
    pub const WHOLE: Shard = Shard { index: 1, of: 1 };

    /// Returns true if it has this point. Each point is in exactly one of `of` shards.
    pub fn has(self, point: usize) -> bool {
        point % self.of == self.index - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    /// `3/8`: the third of eight.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parsed = parts.and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match parsed {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Shard { index, of }),
            _ => Err("expected SHARD/SHARDS, counted from 1, e.g. 3/8".into()),
        }
    }
}

impl Display for Shard {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_is_in_one_shard() {
        for of in 1..=20 {
            for point in 0..100 {
                let has = |index: &usize| Shard { index: *index, of }.has(point);
                assert_eq!((1..=of).filter(has).count(), 1, "{point} of {of}");
            }
        }
    }

    #[test]
    fn a_shard_is_two_numbers() {
        let shard: Shard = "3/8".parse().expect("a shard");
        assert_eq!(
            (shard.to_string(), shard.has(2), shard.has(3)),
            ("3/8".into(), true, false)
        );
        for bad in ["", "3", "0/8", "9/8", "1/0", "-1/2", "1/2/3", "a/b"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
