//! The threads that held `mmap_lock` while others waited for it.

use super::{Recording, seconds};
use crate::account::{Held, StackId};
use crate::locks::{caller, runs_with};
use profile::{Holder, Kind};
use std::collections::{BTreeMap, HashMap};

/// The key of a row: process, whether it is watched, taker, mode.
type Key<'a> = (&'a str, bool, &'a str, Kind);

impl Recording {
    /// The holders of `mmap_lock` for which watched threads waited, the one that most waited for
    /// first.
    pub fn holders(&self) -> Vec<Holder> {
        let mut rows: BTreeMap<Key<'_>, (Held, HashMap<&str, u64>)> = BTreeMap::new();
        for (&(stack, write, is_watched), held) in &self.0.totals.holds {
            let acquired = &self.0.stacks[stack as usize];
            let kind = if write {
                Kind::RwsemWrite
            } else {
                Kind::RwsemRead
            };
            let key = (
                acquired.process.as_str(),
                is_watched,
                caller(&acquired.kernel),
                kind,
            );
            let (sum, functions) = rows.entry(key).or_default();
            sum.add_all(held);
            for (&sampled, &count) in &held.samples {
                if let Some(function) = self.ran_with(stack, sampled) {
                    *functions.entry(function).or_default() += count;
                }
            }
        }
        let rows = rows.into_iter();
        let mut holders = Vec::from_iter(rows.map(|(key, (held, functions))| {
            let most = functions
                .into_iter()
                .max_by_key(|&(name, count)| (count, name));
            let (process, is_watched, taker, kind) = key;
            let function = most.map_or(taker, |(name, _)| name);
            self.holder((process, is_watched, function, kind), &held)
        }));
        holders.sort_by(|a, b| b.waited.total_cmp(&a.waited));
        holders
    }

    /// Says for which part of the time holders are known.
    pub(super) fn note_of_holders(&self) -> Option<String> {
        const NEARLY_ALL: f64 = 0.95;
        let recorded = seconds(self.0.totals.recorded_holds?) / self.0.span.as_secs_f64();
        (recorded < NEARLY_ALL).then(|| {
            format!(
                "holders of mmap_lock were recorded for {:.0} % of the time: it is acquired so \
                 often that more would slow the tasks down",
                100.0 * recorded
            )
        })
    }

    fn ran_with(&self, acquired: StackId, sampled: StackId) -> Option<&str> {
        let frames = |stack: StackId| self.0.stacks[stack as usize].kernel.as_slice();
        runs_with(frames(acquired), frames(sampled))
    }

    fn holder(&self, (process, is_watched, function, kind): Key<'_>, held: &Held) -> Holder {
        let times = held.times;
        let all = self.0.totals.waited_for_holds.max(1);
        Holder {
            lock: "mmap_lock".to_owned(),
            process: process.to_owned(),
            watched: is_watched,
            function: function.to_owned(),
            kind,
            holds: times.count,
            total: seconds(times.total),
            mean: seconds(times.total) / times.count.max(1) as f64,
            p99: seconds(held.spread.value_at_quantile(0.99).min(times.worst)),
            worst: seconds(times.worst),
            waited: seconds(held.waited),
            share: held.waited as f64 / all as f64,
        }
    }
}
