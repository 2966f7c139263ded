//! A hash map in safe code: a bucket is replaced as a whole, and readers keep the one they found.

use crate::epoch::actor::{Actor, actors};
use hosted::Hosted;
use machine::Topology;
use std::collections::HashMap;
use std::sync::Arc;
use sync::hazard::{Domain, Shared};

const BUCKETS: usize = 16;

/// A map of numbers.
pub struct Map {
    buckets: Vec<Shared<Hosted, Vec<(u64, u64)>>>,
    domain: Domain<Hosted>,
}

impl Map {
    pub fn new(machine: &Hosted) -> Self {
        let domain = Domain::new(machine.cpus());
        let buckets = (0..BUCKETS).map(|_| Shared::new(&domain, None));
        Map {
            buckets: buckets.collect(),
            domain,
        }
    }

    pub fn get(&self, key: u64) -> Option<u64> {
        let section = self.domain.enter();
        let bucket = section.protect(self.bucket(key))?;
        let entry = bucket.iter().find(|(other, _)| *other == key);
        entry.map(|&(_, value)| value)
    }

    /// Sets the key's value to what `change` makes of the old one.
    pub fn update(&self, key: u64, change: impl Fn(Option<u64>) -> Option<u64>) {
        let section = self.domain.enter();
        let shared = self.bucket(key);
        loop {
            let bucket = section.protect(shared);
            let old = bucket.as_deref().map_or(&[][..], Vec::as_slice);
            let value = old.iter().find(|(other, _)| *other == key);
            let value = change(value.map(|&(_, value)| value));
            let others = old.iter().copied().filter(|(other, _)| *other != key);
            let new: Vec<_> = others.chain(value.map(|value| (key, value))).collect();
            let new = (!new.is_empty()).then_some(new);
            if shared.replace_if(&section, bucket.as_ref(), new).is_ok() {
                return;
            }
        }
    }

    fn bucket(&self, key: u64) -> &Shared<Hosted, Vec<(u64, u64)>> {
        &self.buckets[key as usize % BUCKETS]
    }
}

#[test]
fn one_cpu_has_a_map() {
    let machine = Hosted::new(1);
    machine.on_cpu(0, || {
        let map = Map::new(&machine);
        let mut model = HashMap::new();
        for step in 0..5_000 {
            let key = step * step % 97;
            let new = (step % 3 > 0).then_some(step);
            map.update(key, |_| new);
            match new {
                Some(value) => model.insert(key, value),
                None => model.remove(&key),
            };
            assert_eq!(map.get(key), model.get(&key).copied());
        }
        assert!((0..97).all(|key| map.get(key) == model.get(&key).copied()));
    });
}

#[test]
fn no_update_is_lost() {
    const CPUS: usize = 4;
    const ROUNDS: u64 = 20_000;
    let machine = Hosted::new(CPUS);
    let actors = actors::<CPUS>(&machine);
    let map = Arc::new(Map::new(&machine));
    for actor in &actors {
        let map = map.clone();
        actor.start(move || {
            for round in 0..ROUNDS {
                let key = round % 40;
                let before = map.get(key).unwrap_or(0);
                map.update(key, |value| Some(value.unwrap_or(0) + 1));
                assert!(map.get(key).is_some_and(|after| after > before));
            }
        });
    }
    actors.iter().for_each(Actor::finish);
    let shared = map.clone();
    let sum = actors[0].run(move || (0..40).filter_map(|key| shared.get(key)).sum::<u64>());
    assert_eq!(sum, CPUS as u64 * ROUNDS);
}
