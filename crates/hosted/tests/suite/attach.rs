//! A thread is a CPU until it ends.

use hosted::Hosted;
use std::cell::RefCell;
use std::thread;
use std::time::Duration;

/// Something that takes long to drop when its thread ends.
struct Slow;

impl Drop for Slow {
    fn drop(&mut self) {
        thread::sleep(Duration::from_millis(20));
    }
}

thread_local! {
    static SLOW: RefCell<Option<Slow>> = const { RefCell::new(None) };
}

#[test]
fn a_cpu_is_free_again_after_a_scope() {
    let machine = Hosted::new(1);
    for _ in 0..3 {
        thread::scope(|scope| {
            scope.spawn(|| {
                machine.attach(0);
                // Dropped before the CPU is returned, and maybe after the scope.
                SLOW.set(Some(Slow));
            });
        });
    }
}

#[test]
#[should_panic = "CPU 0 is another thread's"]
fn a_cpu_is_one_threads() {
    let machine = Hosted::new(1);
    machine.attach(0);
    machine.on_cpu(0, || ());
}
