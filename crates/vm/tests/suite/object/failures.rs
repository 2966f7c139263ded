//! Every allocation and every call of a store fails once, in all that an object does: the
//! call returns an error, nothing leaks, nothing is half done.

use super::pages::PAGE;
use crate::refusing;
use crate::store::TestStore;
use crate::world::{File, P, System, nothing_left, pages, world};
use hosted::Hosted;
use std::sync::Arc;
use vm::object::{Object, Pattern};
use vm::{Best, Error, Resource};

/// The target of an injected failure.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Frames,
    Heap,
    Store,
}

/// The state that must not change when a call fails.
fn state(vm: &System, object: Option<&File>) -> (usize, u64, usize, usize, usize) {
    let mut attachments = 0;
    let (mut size, mut resident, mut dirty) = (0, 0, 0);
    if let Some(object) = object {
        size = object.size();
        resident = object.resident_pages();
        object.for_each_attachment(|_| attachments += 1);
        dirty = (0..200).filter(|&index| object.is_dirty(index)).count();
    }
    (vm.frames().free_count(), size, resident, attachments, dirty)
}

/// Fails each step of `kind` of `call` in turn, until it needs no more; how often it failed.
fn each(
    kind: Kind,
    vm: &System,
    store: &TestStore,
    object: Option<&File>,
    mut call: impl FnMut() -> Result<(), Error>,
) -> u64 {
    for nth in 1.. {
        let before = state(vm, object);
        match kind {
            Kind::Frames => vm.frames().fail_after(nth),
            Kind::Heap => refusing::refuse_after(nth),
            Kind::Store => store.fail_after(nth),
        }
        let result = call();
        vm.frames().fail_after(0);
        refusing::refuse_after(0);
        store.fail_after(0);
        let expected = match result {
            Ok(()) => return nth - 1,
            Err(Error::OutOfMemory(Resource::Frames)) => "Frames",
            Err(Error::OutOfMemory(Resource::Heap)) => "Heap",
            Err(Error::Io(error)) if error.errno == 5 => "Store",
            Err(error) => panic!("{error}"),
        };
        assert_eq!(format!("{kind:?}"), expected);
        assert_eq!(state(vm, object), before, "{kind:?} {nth}");
    }
    unreachable!()
}

fn file(vm: &System, pages: u64) -> (Arc<TestStore>, File) {
    let store = Arc::new(TestStore::with(pages, 1));
    let file = Object::file(vm, store.clone(), pages * PAGE).expect("an object");
    (store, file)
}

/// An object for failures of `kind`: a store of the tests' needs the heap itself, and it is
/// not its failures that are looked for.
fn object_for(kind: Kind, vm: &System, pages: u64) -> (Arc<TestStore>, File) {
    match kind {
        Kind::Frames | Kind::Store => file(vm, pages),
        Kind::Heap => {
            let object = Object::anonymous(vm, pages * PAGE).expect("an object");
            (Arc::default(), object)
        }
    }
}

#[test]
fn an_object_that_can_not_be_made_leaves_nothing() {
    let vm = world(8).cpus(1).vm();
    let store = TestStore::default();
    let make = || Object::<Best<Hosted>>::anonymous(&vm, PAGE).map(drop);
    let live = refusing::live();
    assert_eq!(each(Kind::Heap, &vm, &store, None, make), 2);
    assert_eq!(refusing::live(), live, "leaked");
}

#[test]
fn a_page_that_can_not_be_had_changes_nothing() {
    let vm = world(8).cpus(1).vm();
    for kind in [Kind::Frames, Kind::Heap, Kind::Store] {
        let (store, file) = object_for(kind, &vm, 200);
        let fault = || file.page(150, Pattern::Random).map(drop);
        let failures = each(kind, &vm, &store, Some(&file), fault);
        let expected = match kind {
            Kind::Frames | Kind::Store => 1,
            // Leaf 0, a node above it, and leaf 2; each try finds those of the last one.
            Kind::Heap => 2,
        };
        assert_eq!(failures, expected, "{kind:?}");
    }
}

/// Frames and a store that fail for neighbours make a read smaller, not wrong.
#[test]
fn a_read_ahead_that_fails_is_none() {
    let vm = world(8).cpus(1).vm();
    for nth in 2..=16 {
        let (store, file) = file(&vm, 16);
        vm.frames().fail_after(nth);
        assert!(file.page(3, Pattern::Normal).is_ok());
        vm.frames().fail_after(0);
        assert!((1..16).contains(&file.resident_pages()), "{nth}");
        drop(file);
        let (store, file) = (store.clone(), Object::file(&vm, store, 16 * PAGE));
        let file = file.expect("an object");
        store.fail_after(1);
        assert!(file.page(3, Pattern::Normal).is_ok());
        assert_eq!(file.resident_pages(), 1);
    }
    nothing_left(&vm);
}

#[test]
fn a_write_that_fails_changes_nothing() {
    let vm = world(8).cpus(1).vm();
    for kind in [Kind::Frames, Kind::Heap, Kind::Store] {
        let (store, file) = object_for(kind, &vm, 2);
        // So that the store is cut off first.
        file.truncate(PAGE / 2, |_| {}).expect("truncate");
        let append = || file.write(90 * PAGE + 7, &[5; 9]).map(drop);
        let failures = each(kind, &vm, &store, Some(&file), append);
        assert!(failures >= 1, "{kind:?}");
        assert_eq!(file.size(), 90 * PAGE + 16);
        let mut bytes = [0; 9];
        assert_eq!(file.read(90 * PAGE + 7, &mut bytes), Ok(9));
        assert_eq!(bytes, [5; 9]);
    }
}

/// After one page of a write of several pages failed: all that it reports as written was written.
#[test]
fn a_long_write_says_how_far_it_came() {
    let vm = world(8).cpus(1).vm();
    for nth in 1..=5 {
        let (_store, file) = file(&vm, 0);
        vm.frames().fail_from(nth);
        let result = file.write(0, &[5; 5 * P]);
        vm.frames().fail_after(0);
        match nth {
            1 => assert_eq!(result, Err(Error::OutOfMemory(Resource::Frames))),
            _ => assert_eq!(result, Ok((nth as usize - 1) * P)),
        }
        assert_eq!(file.size(), (nth - 1) * PAGE);
        let mut bytes = [0; 5 * P];
        let written = (nth as usize - 1) * P;
        assert_eq!(file.read(0, &mut bytes), Ok(written));
        assert!(bytes[..written].iter().all(|&byte| byte == 5));
    }
}

#[test]
fn a_write_back_that_fails_forgets_nothing() {
    let vm = world(8).cpus(1).vm();
    let (store, file) = file(&vm, 200);
    file.truncate(190 * PAGE, |_| {}).expect("truncate");
    let write_all = || {
        for index in (0..190).step_by(3) {
            let written = file.write(index * PAGE, &index.to_le_bytes());
            written.expect("write");
        }
    };
    write_all();
    // All others are tried, so only the failed page is still dirty.
    for nth in 1.. {
        store.fail_after(nth);
        let result = file.write_back(0..u64::MAX, |_| false);
        store.fail_after(0);
        let dirty = (0..190).filter(|&index| file.is_dirty(index)).count();
        assert_eq!(dirty, usize::from(result.is_err() && nth > 1), "{nth}");
        if result.is_ok() {
            break;
        }
        write_all();
    }
    for index in (0..190).step_by(3) {
        assert_eq!(store.first_word(index), Some(index));
    }
}

#[test]
fn a_truncation_that_fails_changes_nothing() {
    let vm = world(8).cpus(1).vm();
    for kind in [Kind::Frames, Kind::Store] {
        let slots = Arc::new(TestStore::default());
        // SAFETY: no other object has these slots.
        let object =
            unsafe { Object::with_slots(&vm, slots.clone(), 2 * PAGE) }.expect("an object");
        object.write(PAGE, &[5; P]).expect("write");
        let swap_out = || {
            let frame = object.resident(1).expect("a page");
            let hold = vm.page_ref(frame).expect("held");
            let slot = slots.slot(vm.machine(), frame);
            vm.remove_all(&vm.hold(frame).expect("held"));
            // SAFETY: the slot is the object's alone, and has the page's content.
            assert!(unsafe { vm.home(&hold).expect("a page").swap_out(slot) });
        };
        swap_out();
        let shrink = || object.truncate(PAGE + 5, |_| {});
        let shrinks = each(kind, &vm, &slots, Some(&object), shrink);
        let frame = object.resident(1).expect("a page");
        let hold = vm.page_ref(frame).expect("held");
        let home = vm.home(&hold).expect("a page");
        home.write_back(|_| false).expect("nothing to do");
        drop(hold);
        swap_out();
        let grow = || object.truncate(2 * PAGE, |_| {});
        let grows = each(kind, &vm, &slots, Some(&object), grow);
        assert_eq!((shrinks, grows), (1, 1), "{kind:?}");
        let mut bytes = [9; 7];
        assert_eq!(object.read(PAGE, &mut bytes), Ok(7));
        assert_eq!(bytes, [5, 5, 5, 5, 5, 0, 0]);
    }
    nothing_left(&vm);
}

#[test]
fn an_attachment_that_can_not_be_made_leaves_nothing() {
    let vm = world(8).cpus(1).vm();
    let (store, file) = file(&vm, 2);
    let range = pages(1 << 40, 2);
    let live = refusing::live();
    let mut kept = Vec::with_capacity(2);
    // A shard, and the attachment.
    let attach = || {
        // SAFETY: without an owner.
        let attached = unsafe { file.attach(std::ptr::null(), range, 0) };
        attached.map(|one| kept.push(one))
    };
    assert_eq!(each(Kind::Heap, &vm, &store, Some(&file), attach), 2);
    let one = kept.pop().expect("attached");
    let inherit = || {
        // SAFETY: without an owner.
        let inherited = unsafe { one.inherit(std::ptr::null()) };
        inherited.map(|two| kept.push(two))
    };
    assert_eq!(each(Kind::Heap, &vm, &store, Some(&file), inherit), 1);
    drop((one, kept));
    assert!(refusing::live() > live, "the shard stays");
}

/// Whatever an object has on the heap goes with it.
#[test]
fn nothing_stays_on_the_heap() {
    let vm = world(8).cpus(1).vm();
    let live = refusing::live();
    {
        let object = Object::anonymous(&vm, i64::MAX as u64).expect("an object");
        for shift in [0, 6, 13, 30, 44, 50] {
            object.write((1 << shift) * PAGE, &[1]).expect("write");
        }
        let range = pages(1 << 40, 2);
        // SAFETY: without an owner.
        let one = unsafe { object.attach(std::ptr::null(), range, 0) }.expect("attach");
        // SAFETY: without an owner.
        let _two = unsafe { one.inherit(std::ptr::null()) }.expect("inherit");
        assert!(refusing::live() > live + 20 * 512);
    }
    assert_eq!(refusing::live(), live, "leaked");
    nothing_left(&vm);
}
