//! The schedulers of presets: each system's own.

use baselines::selected::Preset;
use sched::freebsd::Ule;
use sched::linux::Cfs;
use sched::openbsd::OpenBsd;
use sched::{Best, Policy, Sched};
use sim::Sim;

/// Something that is done with a policy.
trait Use<R> {
    fn of<P: Policy<Sim>>(self) -> R;
}

/// Says how it is called.
struct Name;

impl Use<&'static str> for Name {
    fn of<P: Policy<Sim>>(self) -> &'static str {
        P::NAME
    }
}

/// Gives it to the machine.
struct Install<'a>(&'a Sim);

impl Use<()> for Install<'_> {
    fn of<P: Policy<Sim>>(self) {
        self.0.schedule(Sched::<Sim, P>::new);
    }
}

/// The name of the preset's scheduler.
pub fn name(preset: Preset) -> &'static str {
    with(preset, Name)
}

/// Gives the machine the scheduler of the preset's system.
pub fn install(machine: &Sim, preset: Preset) {
    with(preset, Install(machine));
}

fn with<R>(preset: Preset, what: impl Use<R>) -> R {
    match preset {
        Preset::Scalevm => what.of::<Best<Sim>>(),
        Preset::FreebsdPvh
        | Preset::FreebsdDi
        | Preset::FreebsdEpoch
        | Preset::FreebsdLocklessDi
        | Preset::FreebsdNuma
        | Preset::FreebsdObmOnly
        | Preset::FreebsdObm => what.of::<Ule<Sim>>(),
        Preset::OpenbsdBiglock | Preset::OpenbsdUnlocked => what.of::<OpenBsd<Sim>>(),
        Preset::Linux2639 | Preset::Linux2639Ra | Preset::Linux30Rc2 | Preset::Linux30Fixes => {
            what.of::<Cfs<Sim>>()
        }
    }
}
