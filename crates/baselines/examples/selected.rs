//! The cost of choosing parts at run time, for counting instructions: `selected CASE
//! ITERATIONS` maps and unmaps 128 MiB on hosted memory, one CPU, warm. A case is a preset, whose
//! parts are chosen at run time, or `compiled`: `vm`'s own, chosen when it is compiled.
//!
//! `tests/costs.rs` runs each case under callgrind and compares it with the figures of
//! `docs/costs.md`. Callgrind counts only instructions within [`counted`].

use baselines::Preset;
use hosted::Hosted;
use machine::VaRange;
use std::hint::black_box;
use vm::{Options, Prot, Space, System, Vm};

const BYTES: usize = 128 << 20;

fn main() {
    let mut args = std::env::args().skip(1);
    let case = args.next().unwrap_or_default();
    let iterations: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    match (case.as_str(), case.parse::<Preset>()) {
        ("observer", _) => println!("{}", std::any::type_name::<sync::watch::DefaultObserver>()),
        ("compiled", _) => map_unmap::<vm::Best<Hosted>>(Options::default(), iterations),
        (_, Ok(preset)) => {
            map_unmap::<baselines::selected::Selected<Hosted>>(preset.options(), iterations);
        }
        (_, Err(unknown)) => {
            eprintln!("selected: {unknown}");
            std::process::exit(2);
        }
    }
}

/// Runs the operation that callgrind counts.
#[inline(never)]
fn counted<R>(operation: impl FnOnce() -> R) -> R {
    black_box(operation())
}

fn map_unmap<S: System<Machine = Hosted>>(mut options: Options<S>, iterations: u64) {
    // A limit, so that mappings are counted against it.
    options.swap_pages = Some(1 << 20);
    let machine = Hosted::with_memory(1, 64 << 20).expect("memory");
    machine.attach(0);
    let vm = Vm::with_options(machine, options).expect("a VM");
    let space = Space::new(&vm).expect("a space");
    space.activate();
    // A process has pages: without one, nothing is delayed for an invalidation.
    let own = space
        .map(machine::PAGE_SIZE, Prot::READ_WRITE)
        .expect("map");
    space.store(own, 1).expect("store");
    let once = || {
        let at = space.map(BYTES, Prot::READ_WRITE).expect("map");
        space.unmap(VaRange::sized(at, BYTES)).expect("unmap");
    };
    for _ in 0..iterations {
        once();
        counted(once);
    }
}
