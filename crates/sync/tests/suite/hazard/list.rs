//! Michael's list (2002): sorted, without locks. A mark in a node's pointer says that the node is
//! about to be unlinked, so that nobody passes on from an unlinked node.

use crate::epoch::actor::{Actor, actors};
use hosted::Hosted;
use machine::{Atomics, Ordering, Topology};
use std::cmp;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use sync::hazard::{Deferred, Domain, Section, Slot};

type Pointer = <Hosted as Atomics>::AtomicPtr;

/// In a node's pointer: the node is deleted.
const MARK: usize = 1;

fn marked(node: *mut ()) -> *mut () {
    node.map_addr(|address| address | MARK)
}

fn is_marked(node: *mut ()) -> bool {
    node.addr() & MARK != 0
}

/// A sorted set of numbers.
pub struct List {
    domain: Arc<Domain<Hosted>>,
    head: Pointer,
    freed: Arc<AtomicUsize>,
}

#[repr(C)]
struct Node {
    /// The first field, so that a pointer to it is also one to the node.
    deferred: Deferred<Hosted>,
    key: u64,
    /// The next node. With [`MARK`] once this one is deleted; it does not change any more then.
    next: Pointer,
    freed: Arc<AtomicUsize>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.key = u64::MAX;
        self.freed.fetch_add(1, Relaxed);
    }
}

/// Where a key is, or belongs.
struct Place<'s> {
    /// What leads to `node`: the head, or the pointer in the node that `_before` protects.
    link: *const Pointer,
    /// The first node whose key is not smaller, or null; `_here` protects it.
    node: *mut Node,
    is_key: bool,
    _before: Slot<'s, Hosted>,
    _here: Slot<'s, Hosted>,
}

impl List {
    pub fn new(domain: &Arc<Domain<Hosted>>) -> Self {
        List {
            domain: domain.clone(),
            head: Pointer::new(null_mut()),
            freed: Arc::default(),
        }
    }

    pub fn contains(&self, key: u64) -> bool {
        self.find(&self.domain.enter(), key).is_key
    }

    /// Returns true if the key was not there.
    pub fn insert(&self, key: u64) -> bool {
        let section = self.domain.enter();
        let node = Box::into_raw(Box::new(Node {
            deferred: Deferred::new(),
            key,
            next: Pointer::new(null_mut()),
            freed: self.freed.clone(),
        }));
        loop {
            let place = self.find(&section, key);
            if place.is_key {
                // SAFETY: no other CPU has seen the new node.
                drop(unsafe { Box::from_raw(node) });
                return false;
            }
            // SAFETY: as above.
            unsafe { &*node }.next.store(place.node.cast(), Relaxed);
            // SAFETY: the place protects the node that has the link.
            let link = unsafe { &*place.link };
            // Release: pairs with the acquire of `Slot::protect`.
            let exchange =
                link.compare_exchange(place.node.cast(), node.cast(), Ordering::Release, Relaxed);
            if exchange.is_ok() {
                return true;
            }
        }
    }

    /// Returns true if the key was there.
    pub fn remove(&self, key: u64) -> bool {
        let section = self.domain.enter();
        loop {
            let place = self.find(&section, key);
            if !place.is_key {
                return false;
            }
            // SAFETY: the place protects the node.
            let next = &unsafe { &*place.node }.next;
            let seen = next.load(Ordering::Acquire);
            let marks = next.compare_exchange(seen, marked(seen), Ordering::AcqRel, Relaxed);
            if is_marked(seen) || marks.is_err() {
                continue;
            }
            // SAFETY: the place protects the node that has the link.
            if !unsafe { self.unlink(&*place.link, place.node, seen) } {
                drop(place);
                // The way there unlinks it.
                self.find(&section, key);
            }
            return true;
        }
    }

    /// Unlinks a marked node, and retires it. Returns false if the link has changed.
    ///
    /// # Safety
    /// The node is protected, and `next` follows it.
    unsafe fn unlink(&self, link: &Pointer, node: *mut Node, next: *mut ()) -> bool {
        unsafe fn free(node: *mut Deferred<Hosted>) {
            // SAFETY: the node was made as a box, and is retired once.
            drop(unsafe { Box::from_raw(node.cast::<Node>()) });
        }
        let exchange = link.compare_exchange(node.cast(), next, Ordering::AcqRel, Relaxed);
        if exchange.is_ok() {
            // SAFETY: the exchange unlinked it from the one link that leads to it without a mark;
            // nobody passes a marked one, and a marked node is not linked again.
            unsafe { self.domain.retire(node.cast(), free) };
        }
        exchange.is_ok()
    }

    /// Finds the place of a key, and unlinks the marked nodes on the way.
    fn find<'s>(&self, section: &'s Section<'_, Hosted>, key: u64) -> Place<'s> {
        'again: loop {
            let (mut before, mut here) = (section.slot(), section.slot());
            let mut link: *const Pointer = &self.head;
            loop {
                // SAFETY: the link is the head, or in the node that `before` protects.
                let source = unsafe { &*link };
                let found = here.protect(source);
                if is_marked(found) {
                    // The node before is deleted, and may lead to one that is freed.
                    continue 'again;
                }
                let node = found.cast::<Node>();
                let place = |is_key, before, here| Place {
                    link,
                    node,
                    is_key,
                    _before: before,
                    _here: here,
                };
                // SAFETY: `here` protects the node, as its link had no mark when it was read again.
                let Some(it) = (unsafe { node.as_ref() }) else {
                    return place(false, before, here);
                };
                let next = it.next.load(Ordering::Acquire);
                if is_marked(next) {
                    // SAFETY: `here` protects the node, and its pointer does not change any more.
                    let clean = next.map_addr(|address| address & !MARK);
                    // SAFETY: as above.
                    if !unsafe { self.unlink(source, node, clean) } {
                        continue 'again;
                    }
                    continue;
                }
                match it.key.cmp(&key) {
                    cmp::Ordering::Less => {
                        link = &it.next;
                        std::mem::swap(&mut before, &mut here);
                    }
                    order => return place(order == cmp::Ordering::Equal, before, here),
                }
            }
        }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        let mut next = self.head.load(Relaxed);
        while !next.is_null() {
            let address = next.map_addr(|address| address & !MARK);
            // SAFETY: the list is exclusive, so its nodes are too.
            let node = unsafe { Box::from_raw(address.cast::<Node>()) };
            next = node.next.load(Relaxed);
        }
    }
}

#[test]
fn one_cpu_keeps_a_sorted_set() {
    let machine = Hosted::new(1);
    machine.on_cpu(0, || {
        let domain = Arc::new(Domain::new(machine.cpus()));
        let list = List::new(&domain);
        for key in [5, 3, 9, 3, 7] {
            assert_eq!(list.insert(key), !(key == 3 && list.contains(9)));
        }
        assert!([3, 5, 7, 9].into_iter().all(|key| list.contains(key)));
        assert!(list.remove(5) && !list.remove(5) && !list.contains(5));
        assert!([3, 7, 9].into_iter().all(|key| list.contains(key)));
    });
}

#[test]
fn each_node_is_freed_once_and_none_that_is_looked_at() {
    const CPUS: usize = 4;
    const ROUNDS: u64 = 30_000;
    let machine = Hosted::new(CPUS);
    let actors = actors::<CPUS>(&machine);
    let domain = Arc::new(Domain::new(machine.cpus()));
    let list = Arc::new(List::new(&domain));
    let totals: [Arc<AtomicUsize>; 3] = Default::default();
    for (cpu, actor) in (0..).zip(&actors) {
        let (list, [made, inserted, removed]) = (list.clone(), totals.clone());
        actor.start(move || {
            let mut dice: u64 = 1 + cpu;
            for _ in 0..ROUNDS {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (key, what) = (dice >> 40 & 31, dice >> 50 & 3);
                match what {
                    0 => {
                        made.fetch_add(1, Relaxed);
                        inserted.fetch_add(usize::from(list.insert(key)), Relaxed);
                    }
                    1 => {
                        removed.fetch_add(usize::from(list.remove(key)), Relaxed);
                    }
                    _ => {
                        list.contains(key);
                    }
                }
            }
        });
    }
    actors.iter().for_each(Actor::finish);
    let [made, inserted, removed] = totals.map(|total| total.load(Relaxed));
    assert!(removed > 1_000, "{removed} removed");
    let shared = list.clone();
    let present = move || (0..32).filter(|&key| shared.contains(key)).count();
    assert_eq!(actors[0].run(present), inserted - removed);
    let held: usize = (0..CPUS).map(|cpu| domain.pending(cpu)).sum();
    assert!(held <= CPUS * domain.batch());
    let freed = list.freed.clone();
    assert_eq!(freed.load(Relaxed) + held, made - inserted + removed);
    drop(actors);
    while Arc::strong_count(&list) > 1 {
        std::thread::yield_now();
    }
    drop((list, domain));
    assert_eq!(freed.load(Relaxed), made);
}
