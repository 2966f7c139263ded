//! What each watched thread did.

use super::{Recording, seconds};
use crate::account::{Cause, Spent};
use crate::locks::{caller, contended};
use crate::symbols::plain;
use profile::{Thread, Wait};
use std::collections::HashMap;

impl Recording {
    /// The watched threads that were seen, if they were told apart.
    pub fn threads(&self) -> Vec<Thread> {
        let threads = self.seen.totals.threads.iter();
        let weight = self.weight();
        Vec::from_iter(threads.map(|(&tid, spent)| self.thread(tid, spent, weight)))
    }

    fn thread(&self, tid: u32, spent: &Spent, weight: f64) -> Thread {
        let mut waits: HashMap<(String, bool), f64> = HashMap::new();
        let sampled = spent.off.iter();
        let sampled = sampled.filter(|(cause, _)| matches!(cause, Cause::Sleep(..)));
        let sampled: u64 = sampled.map(|(_, time)| time).sum();
        let unsampled = spent
            .off
            .get(&Cause::Unsampled)
            .copied()
            .unwrap_or_default();
        for (cause, &time) in &spent.off {
            // What was sampled stands for the rest.
            let factor = match cause {
                Cause::Sleep(..) => 1.0 + unsampled as f64 / sampled.max(1) as f64,
                Cause::Unsampled if sampled > 0 => continue,
                _ => 1.0,
            };
            *waits.entry(self.cause(cause)).or_default() += factor * seconds(time);
        }
        let wait = |((what, idle), seconds)| Wait {
            what,
            seconds,
            idle,
        };
        let mut waits = Vec::from_iter(waits.into_iter().map(wait));
        waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(a.what.cmp(&b.what)));
        let acts = spent.samples > 0 || waits.iter().any(|wait| !wait.idle);
        let name = spent.name.as_ref().filter(|_| acts && tid != spent.pid);
        Thread {
            pid: spent.pid,
            tid,
            process: spent.process.clone(),
            name: name.unwrap_or(&spent.process).clone(),
            busy: spent.samples as f64 * weight,
            waits,
        }
    }

    /// What was waited for, and true if only for something to do.
    fn cause(&self, cause: &Cause) -> (String, bool) {
        match cause {
            Cause::Cpu => ("a CPU".to_owned(), false),
            Cause::Early(sleep) => (sleeping(plain(&sleep.function)), self.is_idle(sleep)),
            Cause::Unsampled => (sleeping(""), true),
            Cause::Lock(stack, flags) => {
                let frames = &self.seen.stacks[*stack as usize].kernel;
                (contended(*flags, frames).name, false)
            }
            Cause::Sleep(stack, word) => {
                let off = &self.off[stack];
                let kernel = &self.seen.stacks[*stack as usize].kernel;
                let name = match off.wanted() {
                    Some(wanted) => self.named(wanted, *word),
                    None => sleeping(caller(kernel)),
                };
                (name, off.is_idle())
            }
        }
    }
}

fn sleeping(function: &str) -> String {
    match function {
        "" => "[asleep]".to_owned(),
        name => name.to_owned(),
    }
}
