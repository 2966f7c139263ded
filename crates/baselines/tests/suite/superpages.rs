//! Superpages under the designs of the case studies: counted, noted and locked by their rules.

use baselines::Preset;
use baselines::selected::Selected;
use hosted::Hosted;
use machine::{PAGE_SIZE, VaRange};
use vm::{Options, Prot, Space, Superpages, Vm};

const AT: usize = 1 << 42;
const PAGES: usize = 512;

fn at(page: usize) -> usize {
    AT + page * PAGE_SIZE
}

/// Makes and splits superpages, with the parts of `preset`.
fn exercise(preset: Preset) {
    let machine = Hosted::with_memory(1, 16 << 20).expect("memory");
    machine.attach(0);
    let vm = Vm::<Selected<Hosted>>::with_options(
        machine,
        Options {
            superpages: Superpages::Always,
            ..preset.options()
        },
    )
    .expect("memory for the VM");
    let space = Space::new(&vm).expect("a space");
    space.activate();
    let whole = VaRange::sized(AT, PAGES * PAGE_SIZE);
    for round in 0..2 {
        space.map_fixed(whole, Prot::READ_WRITE).expect("map");
        for page in 0..PAGES {
            space.store(at(page), page as u64).expect("store");
        }
        assert_eq!(space.pmap().superpages(), 1, "{preset}, round {round}");
        space.protect(whole, Prot::READ).expect("protect");
        space.unmap(whole).expect("unmap");
        assert_eq!(space.pmap().resident(), 0, "{preset}");
    }
    space.map_fixed(whole, Prot::READ_WRITE).expect("map");
    for page in 0..PAGES {
        space.store(at(page), page as u64).expect("store");
    }
    let frame = space.pmap().lookup(at(7)).expect("a page");
    let hold = vm.hold(frame).expect("held");
    assert!(vm.test_referenced(&hold));
    assert_eq!(vm.remove_all(&hold).mappings, 1, "{preset}");
    assert_eq!(space.pmap().superpages(), 0, "{preset}");
    assert_eq!(space.pmap().resident(), PAGES - 1, "{preset}");
    assert_eq!(space.load(at(8)), Ok(8), "{preset}");
    drop((hold, space));
    assert_eq!(vm.frames().free_count(), vm.frames().total(), "{preset}");
}

#[test]
fn every_design_has_them() {
    for preset in Preset::ALL {
        std::thread::spawn(move || exercise(preset))
            .join()
            .expect("no failure");
    }
}
