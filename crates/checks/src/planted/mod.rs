//! Bugs planted on purpose: if `check races` did not find them, it would prove nothing.
//!
//! Each is a small wrong version of real code, or the real code with one step of its protocol
//! broken, in the scenario that also runs the sound one.

mod locks;
mod machine;
mod parts;
mod percpu;
mod wakeup;

use super::races::play::Scenario;
use super::races::scenarios::percpu as counts;
use super::races::scenarios::{alan_cox, counter, epoch, fork, hazard, mutex, write_out};
use machine::{Flaw, Flawed};
use vm::Options;
use vm::system::ObjectPages;

/// A planted bug.
pub struct Planted {
    /// The name on the command line.
    pub name: &'static str,
    /// The bug.
    pub about: &'static str,
    /// The scenario that finds it.
    pub scenario: Scenario,
}

/// All planted bugs.
pub fn all() -> Vec<Planted> {
    let bug = |name, about, scenario: fn(&str) -> Scenario| Planted {
        name,
        about,
        scenario: scenario(name),
    };
    vec![
        bug(
            "load-then-store",
            "a lock taken by a load and then a store",
            mutex::named::<locks::LoadThenStore>,
        ),
        bug(
            "mcs-store",
            "an MCS unlock that empties the queue without compare-and-swap",
            mutex::named::<locks::McsStore>,
        ),
        bug(
            "lost-wake-up",
            "a mutex that parks without a second look once others can see the waiter",
            mutex::named::<wakeup::NoSecondLook>,
        ),
        bug(
            "counter-one-look",
            "an exact counter that empties the stocks once before it refuses",
            counter::fits::<1>,
        ),
        bug(
            "epoch-early",
            "an epoch that takes one advance for a grace period",
            epoch::named::<parts::EarlyGrace>,
        ),
        bug(
            "epoch-no-fence",
            "an epoch whose sections are made visible without a fence",
            epoch::named::<parts::NoFence>,
        ),
        bug(
            "hazard-late",
            "a hazard pointer that is stored after the second look",
            hazard::named::<parts::NamesLate>,
        ),
        bug(
            "no-invalidation",
            "a VM without delayed invalidation",
            |name| alan_cox::named::<parts::NoInvalidation>(name, Options::default),
        ),
        bug(
            "fork-no-flush",
            "a fork that leaves other CPUs of the parent their writable translations",
            |name| fork::named(name, |machine| Flawed::new(machine, Flaw::ForgetsFlush)),
        ),
        bug(
            "copy-before-flush",
            "a copy on write that is made before other CPUs have ceased to write the page",
            |name| fork::named(name, |machine| Flawed::new(machine, Flaw::CopiesEarly)),
        ),
        bug(
            "reclaim-no-wait",
            "a reclaimer that does not wait for those who unmap the page",
            |name| write_out::named::<parts::NoInvalidation>(name, listed),
        ),
        bug(
            "unpin-early",
            "a per-CPU count that drops its pin before it has written",
            counts::named::<percpu::EarlyUnpin>,
        ),
    ]
}

/// Options of a VM in which a task that unmaps an object's page takes it off a list and flushes
/// later.
fn listed() -> Options<parts::NoInvalidation> {
    Options {
        object_pages: ObjectPages::Listed,
        ..Options::default()
    }
}
