//! A CPU's cache of free pages: two buckets of UMA (FreeBSD 14, `vm_page_zone_import` and
//! `_release` of sys/vm/vm_page.c, `uma_zalloc_arg` and `uma_zfree_arg` of uma_core.c).
//!
//! Pages of no object, such as page tables and chunks of PV entries, come from here; pages of
//! objects come from reservations ([`domain`](super::domain)). A CPU takes from one bucket and
//! frees to the other. When both are empty, or both full, it exchanges one with the zone, under
//! that domain's lock of the zone; and if that has none, or has enough, it moves a bucket's pages
//! from or to the domain's free pages, under their lock.
//!
//! A bucket's size follows from the limit of the caches, 0.1 % of a domain's pages
//! (`vm_page_init_cache_zones`, `uma_zone_set_maxcache`): it is the largest of UMA's for which two
//! buckets a CPU stay within it. Here a machine counts as having 4 GiB per CPU in two domains,
//! however much of that is simulated.

use super::domain::{DOMAINS, FreeHeld, MemoryDomains};
use core::{array, mem};
use machine::{CpuRange, Machine, SharedCell};
use sync::adaptive::FreebsdMutex;
use sync::watch::Watched;
use sync::{Mutex, Padded, PerCpu, lock_class};
use vm::Error;

lock_class!(
    /// The lock of a domain's full buckets in the zone (`uzd_lock`).
    pub ZoneDomain = "uma zone domain", rank 47
);

/// Entries of UMA's buckets: powers of two, less the two words of their head (`BUCKET_SIZE`).
const BUCKETS: [u32; 7] = [254, 126, 62, 30, 14, 6, 2];
/// Pages of a CPU's share of memory.
const PAGES_EACH: usize = 1 << 20;
/// Domains among which memory is divided.
const NODES: usize = 2;

/// The caches of all CPUs, and the zone's domains.
pub struct PageCache<M: Machine> {
    cpus: PerCpu<M::Cell<Buckets>, M>,
    zones: [Padded<FullBuckets<M>>; DOMAINS],
    /// The entries of a bucket.
    size: u32,
    /// The most full buckets of a domain.
    most: u32,
}

/// The number of full buckets of a domain.
type FullBuckets<M> = Mutex<M, Watched<M, FreebsdMutex<M>, ZoneDomain>, u32>;

/// The number of pages in a CPU's two buckets. Only that CPU accesses them, pinned.
#[derive(Default)]
struct Buckets {
    allocating: u32,
    freeing: u32,
}

impl<M: Machine> PageCache<M> {
    pub(super) fn new(cpus: CpuRange) -> Result<Self, Error> {
        let count = cpus.len();
        let limit = count * PAGES_EACH / NODES / 1000;
        let fits = |&size: &u32| size as usize * 2 * count <= limit;
        let size = BUCKETS.into_iter().find(fits).unwrap_or(2);
        let rest = limit.saturating_sub(size as usize * 2 * count);
        Ok(PageCache {
            cpus: PerCpu::try_new(cpus, |_| M::Cell::new(Buckets::default()))?,
            zones: array::from_fn(|_| Padded(Mutex::new(0))),
            size,
            most: rest as u32 / size,
        })
    }

    pub(super) fn label(&self) {
        self.cpus.label("uma_cache");
        M::label_value(&self.zones, "uma_zone_domain");
        MemoryDomains::<M>::of_machine().label();
    }

    /// Does `work` with the buckets of this CPU.
    fn own<R>(&self, work: impl FnOnce(&mut Buckets) -> R) -> R {
        let pin = M::pin();
        // SAFETY: pinned, so no other task accesses this CPU's buckets.
        work(unsafe { &mut *self.cpus.get(&pin).write() })
    }

    /// Called before a page is taken. Returns the domain's free pages, locked, if neither the CPU
    /// nor the zone has one.
    #[track_caller]
    pub(super) fn take(&self) -> Option<FreeHeld<'static, M>> {
        let served = self.own(|buckets| {
            if buckets.allocating == 0 {
                mem::swap(&mut buckets.allocating, &mut buckets.freeing);
            }
            let left = buckets.allocating.checked_sub(1);
            left.inspect(|&left| buckets.allocating = left).is_some()
        });
        if served {
            return None;
        }
        let here = MemoryDomains::<M>::here();
        let cached = {
            let mut full = self.zones[here].lock();
            let left = full.checked_sub(1);
            left.inspect(|&left| *full = left).is_some()
        };
        self.own(|buckets| buckets.allocating += self.size - 1);
        (!cached).then(|| {
            let domain = MemoryDomains::of_machine().of(here);
            domain.taken(self.size.into());
            domain.lock_free()
        })
    }

    /// Called before a page is freed. Returns the domain's free pages, locked, if both the CPU and
    /// the zone have enough.
    #[track_caller]
    pub(super) fn give(&self) -> Option<FreeHeld<'static, M>> {
        let served = self.own(|buckets| {
            if buckets.freeing >= self.size && buckets.allocating < buckets.freeing {
                mem::swap(&mut buckets.allocating, &mut buckets.freeing);
            }
            let has_room = buckets.freeing < self.size;
            buckets.freeing = if has_room { buckets.freeing + 1 } else { 1 };
            has_room
        });
        if served {
            return None;
        }
        let here = MemoryDomains::<M>::here();
        let cached = {
            let mut full = self.zones[here].lock();
            let fits = *full < self.most;
            *full += u32::from(fits);
            fits
        };
        (!cached).then(|| {
            let domain = MemoryDomains::of_machine().of(here);
            domain.freed(self.size.into());
            domain.lock_free()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hosted::Hosted;
    use machine::Topology;

    /// A CPU takes the free lock for a bucket of pages, exchanges its own two before it does, and
    /// gives a bucket back when both are full and the zone has enough.
    #[test]
    fn the_free_lock_is_for_whole_buckets() {
        let machine = Hosted::new(1);
        machine.on_cpu(0, || {
            let cache = PageCache::<Hosted>::new(machine.cpus()).expect("room");
            let size = cache.size as usize;
            let locks = |takes: bool, count: usize| {
                let one = |_: &usize| {
                    if takes {
                        cache.take().is_some()
                    } else {
                        cache.give().is_some()
                    }
                };
                (0..count).filter(one).count()
            };
            assert_eq!((size, cache.most), (254, 0));
            assert_eq!(locks(true, 2 * size), 2);
            // One bucket remains with the CPU, the other fills up; a third is given back.
            assert_eq!(locks(false, 2 * size), 0);
            assert_eq!(locks(false, 1), 1);
            assert_eq!(locks(true, size + 1), 0, "both are used first");
        });
    }
}
