//! Files that spaces map: what is on the disk, and what the kernel does to their pages.

use crate::store::TestStore;
use crate::world::{File, P, System, TestSpace, active, is_segv, load, page, pages, store, world};
use std::sync::Arc;
use vm::object::Object;
use vm::{Advice, Error, Prot, Request, Resource};

/// A file of `pages` pages, each beginning with its index.
fn file(vm: &System, pages: usize) -> (Arc<TestStore>, File) {
    let store = Arc::new(TestStore::default());
    let object = Object::file(vm, store.clone(), 0).expect("an object");
    for page in 0..pages {
        let word = (page as u64).to_le_bytes();
        object.write((page * P) as u64, &word).expect("write");
    }
    object.set_size((pages * P) as u64).expect("set_size");
    (store, object)
}

fn request(object: &File, pages: usize) -> Request<'_, vm::Best<hosted::Hosted>> {
    Request::object(object, 0, pages * P, Prot::READ_WRITE).expect("a request")
}

/// A space that shares the first pages of a file, and where they are.
fn sharer(vm: &System, object: &File, pages: usize) -> (TestSpace, usize) {
    let space = active(vm);
    let at = space.map_as(&request(object, pages).shared()).expect("map");
    (space, at)
}

#[test]
fn a_mapping_that_goes_says_that_its_page_was_used() {
    let vm = world(16).vm();
    let (_, object) = file(&vm, 1);
    let (space, at) = sharer(&vm, &object, 1);
    assert_eq!(space.load(at), Ok(0));
    let frame = object.resident(0).expect("in memory");
    let hold = vm.hold(frame).expect("held");
    space.unmap(page(at)).expect("unmap");
    assert!(vm.test_referenced(&hold));
    assert!(!vm.test_referenced(&hold), "it was asked before");
}

#[test]
fn sync_writes_what_tasks_wrote() {
    let vm = world(16).vm();
    let (disk, object) = file(&vm, 3);
    let (space, at) = sharer(&vm, &object, 3);
    let sync = |range| space.sync(range).expect("sync");
    sync(pages(at, 3));
    store(&space, at + P, 77);
    sync(pages(at, 3));
    assert_eq!(disk.first_word(1), Some(77));
    // The same translation writes again.
    store(&space, at + P, 78);
    sync(page(at));
    assert_eq!(disk.first_word(1), Some(77));
    sync(pages(at, 3));
    assert_eq!(disk.first_word(1), Some(78));
    // The last mapping of a file goes.
    store(&space, at, 79);
    drop(object);
    space.unmap(pages(at, 3)).expect("unmap");
    assert_eq!(disk.first_word(0), Some(79));
}

#[test]
fn removal_of_a_files_pages_makes_them_zero() {
    let vm = world(16).vm();
    let (disk, object) = file(&vm, 3);
    let bytes = 3 * P as u64 - 8;
    object.set_size(bytes).expect("set_size");
    let (space, at) = sharer(&vm, &object, 3);
    let sync = || space.sync(pages(at, 3)).expect("sync");
    sync();
    let removed = space.advise(pages(at + P, 2), Advice::Remove);
    removed.expect("advise");
    assert_eq!([1, 2].map(|page| load(&space, at + page * P)), [0; 2]);
    let mut read = [1; 8];
    assert_eq!(object.read(P as u64, &mut read), Ok(8));
    assert_eq!((read, object.size()), ([0; 8], bytes));
    sync();
    let words = [0, 1, 2].map(|page| disk.first_word(page));
    assert_eq!(words, [Some(0); 3]);
}

#[test]
fn removal_that_memory_refuses_changes_nothing() {
    let vm = world(16).vm();
    let (disk, _) = file(&vm, 3);
    let object = Object::file(&vm, disk.clone(), 3 * P as u64).expect("an object");
    let (space, at) = sharer(&vm, &object, 3);
    let advise = |advice| space.advise(pages(at, 3), advice);
    advise(Advice::Random).expect("advise");
    // One page is in memory, the others are on the disk only.
    store(&space, at, 7);
    let frames = vm.frames().free_count();
    vm.frames().fail_from(1);
    let refused = advise(Advice::Remove);
    assert_eq!(refused, Err(Error::OutOfMemory(Resource::Frames)));
    vm.frames().fail_after(0);
    assert_eq!(load(&space, at), 7);
    // With one frame for zeroes it is done, whatever the number of pages.
    vm.frames().fail_from(2);
    assert_eq!(advise(Advice::Remove), Ok(()));
    vm.frames().fail_after(0);
    assert_eq!(vm.frames().free_count(), frames);
    assert_eq!([1, 2].map(|page| disk.first_word(page)), [Some(0); 2]);
    assert_eq!([0, 1, 2].map(|page| load(&space, at + page * P)), [0; 3]);
}

#[test]
fn the_kernel_reads_and_writes_what_tasks_do() {
    let vm = world(16).vm();
    let (_, object) = file(&vm, 2);
    let (one, shared) = sharer(&vm, &object, 2);
    let other = active(&vm);
    let private = other.map_as(&request(&object, 2)).expect("map");
    let text: Vec<u8> = (0..200).collect();
    let at = P - 99;
    one.copy_out(shared + at, &text).expect("copy out");
    let mut back = vec![0; 200];
    other.copy_in(private + at, &mut back).expect("copy in");
    assert_eq!(back, text);
    let copied = other.copy_out(private + at + 1, &[250; 3]);
    copied.expect("copy out");
    one.copy_in(shared + at, &mut back).expect("copy in");
    assert_eq!(back, text);
    assert!(is_segv(one.copy_out(shared + 2 * P - 4, &text)));
}
