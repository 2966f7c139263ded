//! Truncation where the mappings of objects' pages are on the pages' lists, as private ones are.

use baselines::Preset;
use baselines::selected::Selected;
use hosted::Hosted;
use machine::{PAGE_SIZE, Topology, VaRange};
use vm::object::Object;
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::{Advice, Error, Options, Prot, Request, Space, Vm};

/// A page has left its object while its mapping still exists: a reclaimer would then take it for
/// private memory.
#[test]
fn a_page_that_is_cut_off_does_not_go_out() {
    let machine = Hosted::with_memory(1, 4 << 20).expect("memory");
    machine.attach(0);
    let swap = SwapSpace::new(machine.cpus(), Box::new(MemoryPager::new()), 64);
    let options = Options {
        swap_space: Some(swap.expect("a swap space")),
        ..Preset::FREEBSD_EPOCH.options()
    };
    let vm = Vm::<Selected<Hosted>>::with_options(machine, options).expect("memory for the VM");
    let space = Space::new(&vm).expect("a space");
    space.activate();
    let object = Object::anonymous(&vm, PAGE_SIZE as u64).expect("an object");
    let request = Request::object(&object, 0, PAGE_SIZE, Prot::READ_WRITE).expect("a request");
    let page = VaRange::sized(space.map_as(&request.shared()).expect("map"), PAGE_SIZE);
    space.store(page.start, 1).expect("store");
    let out = |hold: &_| {
        space.advise(page, Advice::PageOut).expect("advise");
        vm.remove_all(hold);
    };
    object.truncate(0, out).expect("truncate");
    assert_eq!(space.load(page.start), Err(Error::Bus { page: 0 }));
    assert_eq!(vm.swap_slots().expect("given").used, 0);
}
