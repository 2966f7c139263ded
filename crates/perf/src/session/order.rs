//! Events of all rings, in order of time.

use crate::event::{Event, Stamped};

/// Events that may be preceded by some not read yet: each CPU has its own ring.
#[derive(Debug)]
pub(crate) struct Order<E = Event>(Vec<Stamped<E>>);

impl<E> Default for Order<E> {
    fn default() -> Self {
        Order(Vec::new())
    }
}

impl<E> Order<E> {
    /// Adds an event of any time.
    pub fn add(&mut self, event: Stamped<E>) {
        self.0.push(event);
    }

    /// The events added since there were `count`.
    pub fn since(&self, count: usize) -> &[Stamped<E>] {
        &self.0[count..]
    }

    /// The number of events.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Takes events up to `horizon`, in order of time; events of the same time keep the order in
    /// which they were added.
    pub fn take_until(&mut self, horizon: u64) -> impl Iterator<Item = Stamped<E>> {
        self.0.sort_by_key(|stamped| stamped.time);
        let ready = self.0.partition_point(|stamped| stamped.time <= horizon);
        self.0.drain(..ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: u64, count: u64) -> Stamped {
        let event = Event::Lost(count);
        Stamped { time, event }
    }

    #[test]
    fn what_one_cpu_wrote_later_comes_later() {
        let mut order = Order::default();
        for event in [at(10, 0), at(30, 0), at(20, 1), at(20, 2), at(50, 1)] {
            order.add(event);
        }
        let taken: Vec<Stamped> = order.take_until(30).collect();
        assert_eq!(taken, [at(10, 0), at(20, 1), at(20, 2), at(30, 0)]);
        order.add(at(40, 0));
        let rest: Vec<Stamped> = order.take_until(u64::MAX).collect();
        assert_eq!(rest, [at(40, 0), at(50, 1)]);
    }
}
