//! Children of one parent at work (S17), by their number: the effect of a mutex at the root on the
//! rate that spin locks have, and of keeping it along a chain; or, with `ours`, the rate of the
//! default design as a part of one child's for each CPU at work.
//!
//! `cargo run --release -p scalevm-studies --example family [-- MACHINE [ours]]`

use baselines::Preset;
use sim::profile::MachineProfile;
use studies::Effort;
use studies::anon_vma::{DEEDS, Deed, rate};

#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

/// From one child to two for each CPU.
const COUNTS: [usize; 8] = [1, 2, 4, 8, 16, 32, 48, 96];
/// The CPUs of a die of `opteron-48`, the CPUs of the machine, and twice that.
const OURS: [usize; 3] = [6, 48, 96];
const SEED: u64 = 1;

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "opteron-48".into());
    let machine = MachineProfile::named(&name).or_else(|_| MachineProfile::load(&name));
    let machine = machine.expect("a machine's name, or the file of its profile");
    let ours = args.next().is_some();
    for (deed, what) in DEEDS {
        println!("{what}, on {}", machine.name);
        if ours {
            efficiency(deed, &machine)
        } else {
            locks(deed, &machine)
        }
    }
}

fn of(deed: Deed, preset: Preset, children: usize, machine: &MachineProfile) -> f64 {
    let outcome = rate(deed, preset, children, machine, SEED, &Effort::quick(1));
    outcome.expect("a run").value
}

fn locks(deed: Deed, machine: &MachineProfile) {
    for children in COUNTS {
        let of = |preset| of(deed, preset, children, machine);
        let (spin, mutex) = (of(Preset::LINUX_2_6_39_RA), of(Preset::LINUX_3_0_RC2));
        let kept = of(Preset::LINUX_3_0_FIXES);
        println!(
            "{children:4} children: {spin:9.0}/s with spin locks; mutex over that {:.2}; kept over \
             mutex {:.2}",
            mutex / spin,
            kept / mutex
        );
    }
}

fn efficiency(deed: Deed, machine: &MachineProfile) {
    let of = |children| of(deed, Preset::SCALEVM, children, machine);
    let one = of(1);
    for children in OURS {
        let cpus = children.min(machine.cpus());
        let part = of(children) / (one * cpus as f64);
        println!(
            "{children:4} children: {:.0} % of {cpus} times one",
            100.0 * part
        );
    }
}
