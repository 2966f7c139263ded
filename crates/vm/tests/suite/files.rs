//! Files and shared memory in spaces, on hosted memory.

use crate::system::{System, TestSpace, plain};
use hosted::Hosted;
use machine::{PAGE_SIZE, Topology, VaRange};
use std::sync::Arc;
use vm::object::{Object, ObjectRef};
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::system::Reservation;
use vm::{
    Advice, At, Best, Bring, Error, Flags, Move, Options, Prot, Request, Resource, Space, Vm,
};

use crate::store;

const MIB: usize = 1 << 20;

fn space(vm: &System) -> TestSpace {
    Space::new(vm).expect("a space")
}

fn store(space: &TestSpace, at: usize, value: u64) {
    space.activate();
    space.store(at, value).expect("store");
}

fn load(space: &TestSpace, at: usize) -> u64 {
    space.activate();
    space.load(at).expect("load")
}

/// A file of `pages` pages, each beginning with its index.
fn file(vm: &System, pages: u64) -> (Arc<store::TestStore>, ObjectRef<Best<Hosted>>) {
    let store = Arc::new(store::TestStore::default());
    let object = Object::file(vm, store.clone(), 0).expect("an object");
    for page in 0..pages {
        let at = page * PAGE_SIZE as u64;
        object.write(at, &page.to_le_bytes()).expect("write");
    }
    object.set_size(pages * PAGE_SIZE as u64).expect("set_size");
    (store, object)
}

fn map(space: &TestSpace, object: &ObjectRef<Best<Hosted>>, pages: usize, shared: bool) -> usize {
    let bytes = pages * PAGE_SIZE;
    let request = Request::object(object, 0, bytes, Prot::READ_WRITE).expect("a request");
    let request = if shared { request.shared() } else { request };
    space.map_as(&request).expect("map")
}

fn word_of(object: &ObjectRef<Best<Hosted>>, page: u64) -> u64 {
    let mut bytes = [0; 8];
    let read = object.read(page * PAGE_SIZE as u64, &mut bytes);
    assert_eq!(read, Ok(8));
    u64::from_le_bytes(bytes)
}

#[test]
fn shared_stores_are_the_files_and_private_ones_are_not() {
    let vm = plain(2, 16);
    let before = vm.frames().free_count();
    let (_, object) = file(&vm, 4);
    let (one, other) = (space(&vm), space(&vm));
    let shared = map(&one, &object, 4, true);
    let private = map(&other, &object, 4, false);
    assert_eq!(load(&one, shared + PAGE_SIZE), 1);
    assert_eq!(load(&other, private + 2 * PAGE_SIZE), 2);
    store(&one, shared + PAGE_SIZE, 100);
    assert_eq!(load(&other, private + PAGE_SIZE), 100);
    store(&other, private + PAGE_SIZE, 200);
    store(&other, private + 2 * PAGE_SIZE, 201);
    store(&other, private + 3 * PAGE_SIZE, 202);
    assert_eq!(load(&one, shared + PAGE_SIZE), 100);
    assert_eq!(load(&one, shared + 2 * PAGE_SIZE), 2);
    assert_eq!(word_of(&object, 3), 3);
    store(&one, shared + 2 * PAGE_SIZE, 101);
    assert_eq!(load(&other, private + 2 * PAGE_SIZE), 201);
    assert_eq!(word_of(&object, 2), 101);
    // Dropping private pages brings the file's back.
    let range = VaRange::sized(private, 4 * PAGE_SIZE);
    other.advise(range, Advice::DontNeed).expect("advise");
    assert_eq!(load(&other, private + 2 * PAGE_SIZE), 101);
    drop((one, other, object));
    assert_eq!(vm.frames().free_count(), before);
}

#[test]
fn children_share_what_is_shared() {
    let vm = plain(2, 16);
    let (_, object) = file(&vm, 2);
    let parent = space(&vm);
    let shared = map(&parent, &object, 2, true);
    let private = map(&parent, &object, 2, false);
    let anonymous = Request::anonymous(2 * PAGE_SIZE, Prot::READ_WRITE).shared();
    let memory = parent.map_as(&anonymous).expect("map");
    store(&parent, memory, 1);
    store(&parent, private, 5);
    drop(object);
    let child = parent.fork().expect("fork");
    store(&child, memory + PAGE_SIZE, 2);
    store(&child, shared, 3);
    store(&child, private, 6);
    assert_eq!(load(&parent, memory + PAGE_SIZE), 2);
    assert_eq!(load(&parent, shared), 3);
    assert_eq!(load(&parent, private), 5);
    assert_eq!(load(&child, memory), 1);
    drop(parent);
    assert_eq!(load(&child, private + PAGE_SIZE), 1);
    assert_eq!(load(&child, memory + PAGE_SIZE), 2);
}

#[test]
fn a_mapping_that_goes_says_that_its_page_was_used() {
    let vm = plain(2, 16);
    let (_, object) = file(&vm, 1);
    let space = space(&vm);
    let shared = map(&space, &object, 1, true);
    assert_eq!(load(&space, shared), 0);
    let frame = object.resident(0).expect("in memory");
    let hold = vm.hold(frame).expect("held");
    space
        .unmap(VaRange::sized(shared, PAGE_SIZE))
        .expect("unmap");
    assert!(vm.test_referenced(&hold));
    assert!(!vm.test_referenced(&hold), "it was asked before");
}

#[test]
fn what_lies_behind_the_end_is_a_bus_error() {
    let vm = plain(2, 16);
    let (_, object) = file(&vm, 4);
    let space = space(&vm);
    let shared = map(&space, &object, 6, true);
    let private = map(&space, &object, 6, false);
    for page in 0..4 {
        assert_eq!(load(&space, shared + page * PAGE_SIZE), page as u64);
        store(&space, private + page * PAGE_SIZE, 7);
    }
    assert_eq!(
        space.load(shared + 4 * PAGE_SIZE),
        Err(Error::Bus { page: 4 })
    );
    object.set_size(PAGE_SIZE as u64 + 8).expect("set_size");
    for at in [shared, private] {
        assert_eq!(space.load(at + 2 * PAGE_SIZE), Err(Error::Bus { page: 2 }));
        assert!(space.load(at + PAGE_SIZE).is_ok());
    }
    object.set_size(4 * PAGE_SIZE as u64).expect("set_size");
    assert_eq!(load(&space, shared + 2 * PAGE_SIZE), 0);
    assert_eq!(load(&space, private + 3 * PAGE_SIZE), 0);
    assert_eq!(load(&space, private + PAGE_SIZE), 7);
}

#[test]
fn bytes_behind_a_new_end_are_zero_at_once() {
    let vm = plain(1, 16);
    let (_, object) = file(&vm, 2);
    let space = space(&vm);
    let at = map(&space, &object, 2, true) + PAGE_SIZE;
    store(&space, at + 8, 7);
    object.set_size(PAGE_SIZE as u64 + 8).expect("set_size");
    assert_eq!((load(&space, at), load(&space, at + 8)), (1, 0));
}

#[test]
fn sync_writes_what_tasks_wrote() {
    let vm = plain(2, 16);
    let (disk, object) = file(&vm, 3);
    let space = space(&vm);
    let at = map(&space, &object, 3, true);
    let whole = VaRange::sized(at, 3 * PAGE_SIZE);
    space.sync(whole).expect("sync");
    store(&space, at + PAGE_SIZE, 77);
    space.sync(whole).expect("sync");
    assert_eq!(disk.first_word(1), Some(77));
    // The same translation writes again.
    store(&space, at + PAGE_SIZE, 78);
    space.sync(VaRange::sized(at, PAGE_SIZE)).expect("sync");
    assert_eq!(disk.first_word(1), Some(77));
    space.sync(whole).expect("sync");
    assert_eq!(disk.first_word(1), Some(78));
    store(&space, at, 79);
    drop((space, object));
    assert_eq!(disk.first_word(0), Some(79));
}

#[test]
fn rights_are_the_objects_too() {
    let vm = plain(2, 16);
    let (_, object) = file(&vm, 1);
    let space = space(&vm);
    let request = |prot| Request::object(&object, 0, PAGE_SIZE, prot).expect("a request");
    let wanted = request(Prot::READ_WRITE).shared().with(Flags::READ_ONLY);
    assert_eq!(space.map_as(&wanted), Err(Error::Denied));
    let wanted = request(Prot::READ).shared().with(Flags::READ_ONLY);
    let at = space.map_as(&wanted).expect("map");
    let page = VaRange::sized(at, PAGE_SIZE);
    assert_eq!(space.protect(page, Prot::READ_WRITE), Err(Error::Denied));
    let wanted = request(Prot::READ).with(Flags::READ_ONLY);
    let at = space.map_as(&wanted).expect("map");
    let page = VaRange::sized(at, PAGE_SIZE);
    assert_eq!(space.protect(page, Prot::READ_WRITE), Ok(()));
    assert_eq!(vm.swap().reserved(), 1);
    store(&space, at, 9);
    assert_eq!(word_of(&object, 0), 0);
}

#[test]
fn residency_and_removal() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let request = Request::anonymous(4 * PAGE_SIZE, Prot::READ_WRITE).shared();
    let at = space.map_as(&request).expect("map");
    store(&space, at + PAGE_SIZE, 1);
    store(&space, at + 2 * PAGE_SIZE, 2);
    let whole = VaRange::sized(at, 4 * PAGE_SIZE);
    assert_eq!(space.incore(whole), Ok(vec![false, true, true, false]));
    // Shared memory is not dropped, only forgotten here.
    space.advise(whole, Advice::DontNeed).expect("advise");
    assert_eq!(space.incore(whole), Ok(vec![false, true, true, false]));
    assert_eq!(load(&space, at + PAGE_SIZE), 1);
    let page = VaRange::sized(at + PAGE_SIZE, PAGE_SIZE);
    space.advise(page, Advice::Remove).expect("advise");
    assert_eq!(load(&space, at + PAGE_SIZE), 0);
    assert_eq!(load(&space, at + 2 * PAGE_SIZE), 2);
    let freed = space.advise(page, Advice::Free);
    assert!(matches!(freed, Err(Error::Invalid { .. })));
}

#[test]
fn removal_of_a_files_pages_makes_them_zero() {
    let vm = plain(2, 16);
    let (disk, object) = file(&vm, 3);
    object.set_size(3 * PAGE_SIZE as u64 - 8).expect("set_size");
    let (space, other) = (space(&vm), space(&vm));
    let at = map(&space, &object, 3, true);
    let private = map(&other, &object, 3, false);
    store(&other, private + PAGE_SIZE, 9);
    let whole = VaRange::sized(at, 3 * PAGE_SIZE);
    let sync = || space.sync(whole).expect("sync");
    sync();
    let last = VaRange::sized(at + PAGE_SIZE, 2 * PAGE_SIZE);
    space.advise(last, Advice::Remove).expect("advise");
    for page in 1..3 {
        assert_eq!(load(&space, at + page * PAGE_SIZE), 0);
        assert_eq!(word_of(&object, page as u64), 0);
    }
    assert_eq!(object.size(), 3 * PAGE_SIZE as u64 - 8);
    // A private copy stays as it is; a page that is none goes with the file.
    assert_eq!(load(&other, private + PAGE_SIZE), 9);
    assert_eq!(load(&other, private + 2 * PAGE_SIZE), 0);
    sync();
    let words = [0, 1, 2].map(|page| disk.first_word(page));
    assert_eq!(words, [Some(0), Some(0), Some(0)]);
    let refused = other.advise(VaRange::sized(private, PAGE_SIZE), Advice::Remove);
    assert_eq!(refused, Err(Error::Denied));
}

#[test]
fn removal_that_memory_refuses_changes_nothing() {
    let vm = plain(2, 16);
    let (disk, _) = file(&vm, 3);
    let object = Object::file(&vm, disk.clone(), 3 * PAGE_SIZE as u64).expect("an object");
    let space = space(&vm);
    let at = map(&space, &object, 3, true);
    let whole = VaRange::sized(at, 3 * PAGE_SIZE);
    space.advise(whole, Advice::Random).expect("advise");
    // One page is in memory, the others are on the disk only.
    store(&space, at, 7);
    let frames = vm.frames().free_count();
    vm.frames().fail_from(1);
    let refused = space.advise(whole, Advice::Remove);
    assert_eq!(refused, Err(Error::OutOfMemory(Resource::Frames)));
    vm.frames().fail_after(0);
    assert_eq!(load(&space, at), 7);
    // With one frame for zeroes it is done, whatever the number of pages.
    vm.frames().fail_from(2);
    assert_eq!(space.advise(whole, Advice::Remove), Ok(()));
    vm.frames().fail_after(0);
    assert_eq!(vm.frames().free_count(), frames);
    assert_eq!([1, 2].map(|page| disk.first_word(page)), [Some(0); 2]);
    let words = [0, 1, 2].map(|page| load(&space, at + page * PAGE_SIZE));
    assert_eq!(words, [0; 3]);
}

#[test]
fn locked_memory_that_becomes_writable_is_copied_and_no_other() {
    let vm = plain(2, 16);
    let (_, object) = file(&vm, 0);
    let space = space(&vm);
    let at = map(&space, &object, 2, false);
    let (first, both) = (
        VaRange::sized(at, PAGE_SIZE),
        VaRange::sized(at, 2 * PAGE_SIZE),
    );
    space.protect(first, Prot::READ).expect("protect");
    // There is no page yet, so nothing is brought.
    let locked = space.lock(both, Bring::Now);
    assert!(matches!(locked, Err(Error::NotMapped { .. })));
    object.set_size(2 * PAGE_SIZE as u64).expect("set_size");
    space.protect(both, Prot::READ_WRITE).expect("protect");
    object.write(0, &[5; 8]).expect("write");
    object.write(PAGE_SIZE as u64, &[6; 8]).expect("write");
    assert_eq!(load(&space, at), 0);
    assert_eq!(load(&space, at + PAGE_SIZE), u64::from_le_bytes([6; 8]));
}

#[test]
fn what_is_locked_is_not_invalidated() {
    let vm = plain(2, 16);
    let (_, object) = file(&vm, 3);
    let space = space(&vm);
    let at = map(&space, &object, 3, true);
    let whole = VaRange::sized(at, 3 * PAGE_SIZE);
    assert_eq!(space.invalidate(whole), Ok(()));
    let page = |page: usize| VaRange::sized(at + page * PAGE_SIZE, PAGE_SIZE);
    space.unmap(page(0)).expect("unmap");
    let hole = Err(Error::NotMapped { address: at });
    assert_eq!(space.invalidate(whole), hole);
    space.lock(page(2), Bring::OnFault).expect("lock");
    let address = page(2).start;
    assert_eq!(space.invalidate(whole), Err(Error::Busy { address }));
    assert_eq!(Error::Busy { address }.errno(), 16);
}

#[test]
fn removal_spares_what_another_mapping_hides() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let request = Request::anonymous(3 * PAGE_SIZE, Prot::READ_WRITE).shared();
    let at = space.map_as(&request).expect("map");
    for page in 0..3 {
        store(&space, at + page * PAGE_SIZE, 1 + page as u64);
    }
    let other = space.fork().expect("fork");
    let hidden = Request::anonymous(PAGE_SIZE, Prot::READ_WRITE).shared();
    let hidden = hidden.at(At::Fixed(at + PAGE_SIZE));
    space.map_as(&hidden).expect("map");
    let whole = VaRange::sized(at, 3 * PAGE_SIZE);
    space.advise(whole, Advice::Remove).expect("advise");
    let words = [0, 1, 2].map(|page| load(&other, at + page * PAGE_SIZE));
    assert_eq!(words, [0, 2, 0]);
}

#[test]
fn the_kernel_reads_and_writes_what_tasks_do() {
    let vm = plain(2, 16);
    let (_, object) = file(&vm, 2);
    let (one, other) = (space(&vm), space(&vm));
    let shared = map(&one, &object, 2, true);
    let private = map(&other, &object, 2, false);
    let text: Vec<u8> = (0..200).collect();
    let at = PAGE_SIZE - 99;
    one.copy_out(shared + at, &text).expect("copy out");
    let mut back = vec![0; 200];
    other.copy_in(private + at, &mut back).expect("copy in");
    assert_eq!(back, text);
    other
        .copy_out(private + at + 1, &[250; 3])
        .expect("copy out");
    one.copy_in(shared + at, &mut back).expect("copy in");
    assert_eq!(back, text);
    let gone = one.copy_out(shared + 2 * PAGE_SIZE - 4, &text);
    assert!(matches!(gone, Err(Error::Segv(_))), "{gone:?}");
}

#[test]
fn a_shorter_file_spares_what_is_in_front_of_its_end_wherever_it_moved() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let (_, object) = file(&vm, 8);
    let first = map(&space, &object, 1, false);
    store(&space, first, 77);
    // Page 0's copy takes the place of page 2 of another mapping of the file.
    let other = map(&space, &object, 4, false);
    let old = VaRange::sized(first, PAGE_SIZE);
    let to = other + 2 * PAGE_SIZE;
    space.activate();
    let moved = space.remap(old, PAGE_SIZE, Move::To(to));
    assert_eq!(moved, Ok(to));
    object.set_size(PAGE_SIZE as u64).expect("set_size");
    assert_eq!(load(&space, to), 77);
    assert!(matches!(
        space.load(other + PAGE_SIZE),
        Err(Error::Bus { .. })
    ));
}

#[test]
fn a_shorter_file_takes_copies_of_a_mapping_that_grew() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let (_, object) = file(&vm, 8);
    let at = map(&space, &object, 2, false);
    space.activate();
    let whole = VaRange::sized(at, 6 * PAGE_SIZE);
    let old = VaRange::sized(at, 2 * PAGE_SIZE);
    assert_eq!(space.remap(old, 6 * PAGE_SIZE, Move::Never), Ok(at));
    store(&space, at + 5 * PAGE_SIZE, 5);
    object.set_size(PAGE_SIZE as u64).expect("set_size");
    assert!(matches!(
        space.load(at + 5 * PAGE_SIZE),
        Err(Error::Bus { page: 5 })
    ));
    assert_eq!(load(&space, at), 0);
    // It still is one mapping, and moves as one.
    assert!(space.remap(whole, 6 * PAGE_SIZE, Move::Leaving).is_ok());
}

#[test]
fn regions_name_the_object_and_its_page() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let (_, object) = file(&vm, 8);
    let at = map(&space, &object, 4, true);
    let hole = VaRange::sized(at + PAGE_SIZE, PAGE_SIZE);
    space.unmap(hole).expect("unmap");
    let regions = space.regions();
    let objects = regions.iter().filter_map(|region| region.object);
    let objects: Vec<_> = objects.map(|object| (object.id, object.offset)).collect();
    let offset = 2 * PAGE_SIZE as u64;
    assert_eq!(objects, [(object.id(), 0), (object.id(), offset)]);
}

#[test]
fn locked_memory_is_there_and_is_not_dropped() {
    let vm = plain(2, 16);
    let space = space(&vm);
    let (_, object) = file(&vm, 1);
    let at = map(&space, &object, 2, false);
    let range = VaRange::sized(at, 2 * PAGE_SIZE);
    let invalid = |result| assert!(matches!(result, Err(Error::Invalid { .. })), "{result:?}");
    // The second page lies behind the file's end, but the first is locked and there.
    let failed = space.lock(range, Bring::Now);
    assert!(matches!(failed, Err(Error::NotMapped { .. })), "{failed:?}");
    let first = VaRange::sized(at, PAGE_SIZE);
    invalid(space.advise(first, Advice::DontNeed));
    space.unlock(range).expect("unlock");
    space.advise(first, Advice::DontNeed).expect("discard");
    // A page without rights comes when it may be written.
    let none = space.map(PAGE_SIZE, Prot::NONE).expect("map");
    let none = VaRange::sized(none, PAGE_SIZE);
    assert!(space.lock(none, Bring::Now).is_err());
    invalid(space.advise(none, Advice::PopulateRead));
    assert_eq!(space.incore(none), Ok(vec![false]));
    space.protect(none, Prot::READ_WRITE).expect("protect");
    assert_eq!(space.incore(none), Ok(vec![true]));
}

#[test]
fn the_last_addresses_are_nobodys() {
    let vm = plain(2, 16);
    let space = space(&vm);
    space.activate();
    let last = usize::MAX - 7;
    assert!(matches!(space.load(last), Err(Error::Segv(_))));
    assert!(matches!(space.store(last, 1), Err(Error::Segv(_))));
    assert!(matches!(
        space.copy_in(last, &mut [0; 8]),
        Err(Error::Segv(_))
    ));
}

#[test]
fn what_is_in_the_swap_space_moves_without_a_page() {
    let machine = Hosted::with_memory(2, 16 * MIB).expect("memory");
    machine.attach(0);
    let pager = Box::new(MemoryPager::new());
    let swap = SwapSpace::new(machine.cpus(), pager, 64).expect("swap space");
    let options = Options {
        swap_space: Some(Arc::new(swap)),
        ..Options::default()
    };
    let vm: System = Vm::with_options(machine, options).expect("memory for the VM");
    let before = vm.frames().free_count();
    let space = space(&vm);
    space.activate();
    let at = space.map(PAGE_SIZE, Prot::READ_WRITE).expect("map");
    let page = VaRange::sized(at, PAGE_SIZE);
    store(&space, at, 9);
    space.advise(page, Advice::PageOut).expect("page out");
    assert_eq!(space.incore(page), Ok(vec![false]));
    // Into another slot, from where it never comes back.
    let to = at + 64 * MIB;
    assert_eq!(space.remap(page, PAGE_SIZE, Move::To(to)), Ok(to));
    drop(space);
    assert_eq!(vm.frames().free_count(), before, "frames leaked");
}
