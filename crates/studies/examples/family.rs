//! Children of one parent at work (S17), by their number: what a mutex at the root does to a spin lock's rate, and what
//! keeping it along a chain does to the mutex's.
//!
//! `cargo run --release -p scalevm-studies --example family [-- MACHINE]`

use baselines::selected::Preset;
use sim::profile::Profile;
use studies::Effort;
use studies::s17::{DEEDS, rate};

#[global_allocator]
static ALLOCATOR: sim::Allocator = sim::Allocator;

/// From one child to two for each CPU.
const COUNTS: [usize; 8] = [1, 2, 4, 8, 16, 32, 48, 96];
const PRESETS: [Preset; 3] = [
    Preset::Linux2639Ra,
    Preset::Linux30Rc2,
    Preset::Linux30Fixes,
];
const SEED: u64 = 1;

fn main() {
    let name = std::env::args().nth(1);
    let name = name.as_deref().unwrap_or("opteron-48");
    let machine = Profile::named(name).or_else(|_| Profile::load(name));
    let machine = machine.expect("a machine's name, or the file of its profile");
    for (deed, what) in DEEDS {
        println!("{what}, on {}", machine.name);
        for children in COUNTS {
            let rates = PRESETS.map(|preset| {
                let outcome = rate(deed, preset, children, &machine, SEED, &Effort::quick(1));
                outcome.expect("a run").value
            });
            let [spin, mutex, kept] = rates;
            println!(
                "{children:4} children: {spin:9.0}/s with spin locks; mutex over that {:.2}; kept over mutex {:.2}",
                mutex / spin,
                kept / mutex
            );
        }
    }
}
