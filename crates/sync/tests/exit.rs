//! The end of a task leaves no node of a queue lock behind that others cannot use.

use hosted::Hosted;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::thread;
use sync::RawLock;
use sync::spin::{Clh, Mcs};

/// Counts allocations that are aligned as queue nodes are.
struct Counting;

/// The number of these that live.
static NODES: AtomicIsize = AtomicIsize::new(0);

fn count(layout: Layout, by: isize) {
    if layout.align() == 128 {
        NODES.fetch_add(by, Relaxed);
    }
}

// SAFETY: all calls go to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout, 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`, which is the system's.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        count(layout, -1);
        // SAFETY: `alloc` got this block from the system's allocator, with this layout.
        unsafe { System.dealloc(address, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of nodes when a task has used two locks of a kind at once and has ended, for
/// each of five tasks in a row.
fn nodes_after_tasks<R: RawLock<Hosted> + 'static>() -> [isize; 5] {
    let locks = Arc::new([R::new(), R::new()]);
    [(); 5].map(|()| {
        let locks = locks.clone();
        let task = thread::spawn(move || {
            let [first, second] = &*locks;
            let held = (first.lock(), second.lock());
            // SAFETY: locked above.
            unsafe { second.unlock(held.1) };
            // SAFETY: locked above.
            unsafe { first.unlock(held.0) };
        });
        task.join().expect("a task that ends");
        NODES.load(Relaxed)
    })
}

/// One test: the count is the process's.
#[test]
fn a_task_that_ends_gives_its_queue_nodes_up() {
    let before = NODES.load(Relaxed);
    assert_eq!(nodes_after_tasks::<Mcs<Hosted>>(), [before; 5]);
    // Other tasks may still read these nodes. The first task leaves its nodes in the locks; the
    // second's go to the machine's unused nodes, and from there to the third.
    let [_, second, later @ ..] = nodes_after_tasks::<Clh<Hosted>>();
    assert_eq!(later, [second; 3]);
}
