//! The holders that were seen last.

use profile::Holder;
use std::collections::HashMap;

/// Intervals for which a holder is shown after it was seen. Where a lock is acquired often, holders
/// are recorded in windows of time only.
const KEPT: u32 = 5;

/// The main holder of each lock, by the lock's name, and for how many intervals it is shown.
#[derive(Default)]
pub struct Held(HashMap<String, (String, u32)>);

impl Held {
    /// Takes the holders of the next interval; the first of each lock is its main one.
    pub fn take(&mut self, holders: &[Holder]) {
        self.0.retain(|_, (_, left)| {
            *left -= 1;
            *left > 0
        });
        for holder in holders.iter().rev() {
            self.0.insert(holder.lock.clone(), (said(holder), KEPT));
        }
    }

    /// The main holder of a lock, in words; empty if it is not known.
    pub fn of(&self, lock: &str) -> &str {
        self.0.get(lock).map_or("", |(said, _)| said)
    }
}

fn said(holder: &Holder) -> String {
    let foreign = if holder.watched { "" } else { ", not watched" };
    format!("{} ({}{foreign})", holder.function, holder.place())
}
