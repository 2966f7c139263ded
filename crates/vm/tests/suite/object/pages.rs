//! The pages of an object, one task at a time.

use crate::store::{Call, TestStore};
use crate::world::{File, P, System, nothing_left, world};
use hosted::Hosted;
use machine::{Frame, Mmu, Ordering};
use std::sync::Arc;
use vm::object::{Object, PageRef, Pattern};
use vm::{Best, Error, Pmap, Prot};

pub const PAGE: u64 = P as u64;
pub const TAG: u64 = 1000;

/// Sees that `test` leaves nothing behind.
pub fn with_vm(test: impl FnOnce(&System)) {
    let vm = world(16).vm();
    test(&vm);
    nothing_left(&vm);
}

pub fn file(vm: &System, pages: u64) -> (Arc<TestStore>, File) {
    let store = Arc::new(TestStore::with(pages, TAG));
    let object = Object::file(vm, store.clone(), pages * PAGE).expect("an object");
    (store, object)
}

pub fn used(vm: &System) -> usize {
    vm.frames().total() - vm.frames().free_count()
}

/// Unmaps the page. Returns true if it was dirty.
fn is_dirty_when_unmapped(vm: &System, frame: Frame) -> bool {
    vm.remove_all(&vm.hold(frame).expect("held")).dirty
}

/// Holds the page at `index`, which is in memory.
fn held(object: &File, index: u64) -> PageRef<'_, Best<Hosted>> {
    let frame = object.resident(index).expect("a page");
    object.vm().page_ref(frame).expect("held")
}

/// The first word of the page at `index`.
fn first_word(object: &File, index: u64) -> Result<u64, Error> {
    let page = object.page(index, Pattern::Random)?;
    let word = page.word(0);
    Ok(word.load(Ordering::Relaxed))
}

fn read(object: &File, offset: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0xaa; count];
    let done = object.read(offset, &mut bytes).expect("read");
    bytes.truncate(done);
    bytes
}

#[test]
fn a_page_is_read_once_with_what_is_near() {
    with_vm(|vm| {
        let (store, object) = file(vm, 1000);
        assert_eq!(object.page(21, Pattern::Normal).map(drop), Ok(()));
        assert_eq!(store.calls(), [Call::Read(16..32)]);
        assert_eq!(object.page(33, Pattern::Random).map(drop), Ok(()));
        assert_eq!(store.calls(), [Call::Read(33..34)]);
        // Up to the neighbour that is there.
        assert_eq!(object.page(36, Pattern::Normal).map(drop), Ok(()));
        assert_eq!(store.calls(), [Call::Read(34..48)]);
        // Not into the next 2 MiB, nor behind the end.
        assert_eq!(object.page(506, Pattern::Sequential).map(drop), Ok(()));
        assert_eq!(object.page(997, Pattern::Sequential).map(drop), Ok(()));
        assert_eq!(store.calls(), [Call::Read(506..512), Call::Read(997..1000)]);
        for index in (16..32).chain(33..48).chain(506..512).chain(997..1000) {
            assert_eq!(first_word(&object, index), Ok(TAG + index));
        }
        assert_eq!(store.calls(), [], "all are in memory");
        assert_eq!(object.resident_pages(), 16 + 15 + 6 + 3);
    });
}

#[test]
fn a_page_is_found_by_everybody() {
    with_vm(|vm| {
        let (_store, object) = file(vm, 8);
        let one = object.page(3, Pattern::Random).expect("a page");
        let two = object.page(3, Pattern::Random).expect("a page");
        assert_eq!(one.frame(), two.frame());
        assert!(object.still_has(3, one.frame()) && !object.still_has(4, one.frame()));
        let hold = vm.page_ref(one.frame()).expect("held");
        let home = vm.home(&hold).expect("an object's page");
        assert_eq!(home.index(), 3);
        assert!(std::ptr::eq(home.object(), &*object));
        assert!(vm.home(&hold).is_none(), "a task is busy with it");
    });
}

#[test]
fn anonymous_memory_is_zero() {
    with_vm(|vm| {
        let object = Object::anonymous(vm, 3 * PAGE).expect("an object");
        assert_eq!(first_word(&object, 2), Ok(0));
        assert_eq!(object.write(PAGE - 1, &[1, 2]), Ok(2));
        assert_eq!(read(&object, PAGE - 2, 4), [0, 1, 2, 0]);
        assert_eq!(object.write_back(0..9, |_| false), Ok(()));
        assert_eq!(object.resident_pages(), 3);
    });
}

#[test]
fn behind_the_end_there_is_nothing() {
    with_vm(|vm| {
        let (store, object) = file(vm, 2);
        assert_eq!(first_word(&object, 2), Err(Error::Bus { page: 2 }));
        let page = u64::MAX;
        assert_eq!(first_word(&object, page), Err(Error::Bus { page }));
        assert_eq!(read(&object, 2 * PAGE, 5), []);
        assert_eq!(read(&object, u64::MAX, 5), []);
        assert_eq!(read(&object, 2 * PAGE - 3, 5).len(), 3);
        let written = object.write(i64::MAX as u64, &[0]).map(drop);
        let grown = object.truncate(1 << 63, |_| {});
        drop(object);
        let made = Object::<Best<Hosted>>::file(vm, store, 1 << 63).map(drop);
        for huge in [written, grown, made] {
            assert!(matches!(huge, Err(Error::Invalid { .. })), "{huge:?}");
        }
    });
}

#[test]
fn pages_may_be_far_apart() {
    with_vm(|vm| {
        let object = Object::anonymous(vm, i64::MAX as u64).expect("an object");
        let indices = [0, 55, 56, 3583, 3584, 1 << 20, 1 << 40, (1 << 51) - 1];
        for (place, &index) in indices.iter().enumerate() {
            assert_eq!(object.write(index * PAGE, &[place as u8 + 1]), Ok(1));
            assert_eq!(object.resident_pages(), place + 1);
        }
        for (place, &index) in indices.iter().enumerate() {
            assert_eq!(first_word(&object, index), Ok(place as u64 + 1));
            assert!(object.resident(index + 1).is_none() || indices.contains(&(index + 1)));
        }
        object.truncate((1 << 40) * PAGE, |_| {}).expect("truncate");
        assert_eq!(object.resident_pages(), 6);
    });
}

#[test]
fn what_is_written_is_in_the_store_after_a_write_back() {
    with_vm(|vm| {
        let (store, object) = file(vm, 4);
        let text: Vec<u8> = (0..100 * P + 77).map(|i| (i % 251) as u8).collect();
        assert_eq!(object.write(PAGE + 5, &text), Ok(text.len()));
        assert_eq!(object.size(), PAGE + 5 + text.len() as u64);
        assert_eq!(read(&object, PAGE + 5, text.len() + 9), text);
        store.calls();
        assert_eq!(object.write_back(0..u64::MAX, |_| false), Ok(()));
        let rest = (P + 5 + text.len()) - 97 * P;
        let run = |first| Call::Write(first..first + 32, 32 * P);
        let runs = [run(1), run(33), run(65), Call::Write(97..102, rest)];
        assert_eq!(store.calls(), runs);
        assert_eq!(object.write_back(0..u64::MAX, |_| false), Ok(()));
        assert_eq!(store.calls(), [], "nothing is dirty any more");
        assert_eq!(store.bytes(1)[5..], text[..P - 5]);
        assert_eq!(store.bytes(101)[82..], vec![0; P - 82]);
        // Runs end where a page is clean.
        object.write(0, &[1]).expect("write");
        object.write(2 * PAGE, &[1]).expect("write");
        assert_eq!(object.write_back(0..u64::MAX, |_| false), Ok(()));
        let single = |page: u64| Call::Write(page..page + 1, P);
        assert_eq!(store.calls(), [single(0), single(2)]);
        // And where the range does.
        let written = object.write(5 * PAGE, &vec![1; 4 * P]);
        written.expect("write");
        object.write_back(6..8, |_| false).expect("write back");
        assert_eq!(store.calls(), [Call::Write(6..8, 2 * P)]);
        assert!(object.is_dirty(5) && !object.is_dirty(6) && object.is_dirty(8));
    });
}

#[test]
fn the_last_handle_writes_back() {
    with_vm(|vm| {
        let (store, object) = file(vm, 1);
        let again = object.clone();
        object.write(0, &77u64.to_le_bytes()).expect("write");
        drop(object);
        assert_eq!(store.first_word(0), Some(TAG));
        again.write(2 * PAGE, &[1]).expect("write");
        again.truncate(8, |_| {}).expect("truncate");
        drop(again);
        assert_eq!(store.first_word(0), Some(77));
        assert_eq!(store.bytes(0)[8..], vec![0; P - 8], "cut off, too");
        assert_eq!(used(vm), 0);
    });
}

#[test]
fn what_is_cut_off_is_zero_when_it_comes_back() {
    with_vm(|vm| {
        let (store, object) = file(vm, 6);
        object.write(5 * PAGE, &[9; 10]).expect("write");
        assert_eq!(first_word(&object, 1), Ok(TAG + 1));
        store.calls();
        let mut removed = 0;
        object
            .truncate(PAGE + 12, |_| removed += 1)
            .expect("truncate");
        assert_eq!(removed, 4, "page 5 and those read with it");
        assert_eq!(store.calls(), [], "a shrink needs nothing of the store");
        assert_eq!(first_word(&object, 2), Err(Error::Bus { page: 2 }));
        assert_eq!(read(&object, PAGE, 99).len(), 12);
        // A task may write behind the end of the last page; no task finds that later.
        let page = object.page(1, Pattern::Random).expect("a page");
        page.word(2).store(u64::MAX, Ordering::Relaxed);
        drop(page);
        object
            .truncate(6 * PAGE, |_| panic!("nothing to remove"))
            .expect("grow");
        assert_eq!(store.calls(), [Call::Truncate(PAGE + 12)]);
        assert_eq!(read(&object, PAGE + 12, 9000), vec![0; 9000]);
        for index in 2..6 {
            assert_eq!(first_word(&object, index), Ok(0), "page {index}");
        }
        assert_eq!(read(&object, PAGE + 8, 4), [0xe9, 3, 0, 0]);
    });
}

#[test]
fn a_write_far_behind_the_end_leaves_zeroes() {
    with_vm(|vm| {
        let (_store, object) = file(vm, 3);
        object.truncate(10, |_| {}).expect("truncate");
        object.write(2 * PAGE + 100, &[1]).expect("write");
        assert_eq!(object.size(), 2 * PAGE + 101);
        let between = 2 * P + 90;
        assert_eq!(read(&object, 10, between), vec![0; between]);
        assert_eq!(read(&object, 0, 8), TAG.to_le_bytes());
    });
}

#[test]
fn a_bad_page_fails_alone() {
    with_vm(|vm| {
        let (store, object) = file(vm, 16);
        store.set_bad(Some(7));
        let io =
            |result: Result<u64, Error>| matches!(result, Err(e @ Error::Io(_)) if e.errno() == 5);
        let near = object.page(3, Pattern::Normal);
        assert!(near.is_ok(), "its neighbour is bad, not it");
        assert!(io(object.page(7, Pattern::Normal).map(|_| 0)));
        assert!(io(first_word(&object, 7)));
        let read = object.read(6 * PAGE, &mut [0; 3 * P]);
        assert_eq!(read, Ok(P), "up to it");
        assert!(object.read(7 * PAGE, &mut [0; 8]).is_err());
        assert!(object.write(7 * PAGE, &[0; 8]).is_err());
        store.set_bad(None);
        assert_eq!(first_word(&object, 7), Ok(TAG + 7));
    });
}

#[test]
fn what_can_not_be_written_stays_dirty() {
    with_vm(|vm| {
        let (store, object) = file(vm, 3);
        object.write(0, &vec![1; 3 * P]).expect("write");
        object.write(40 * PAGE, &[2]).expect("write");
        store.calls();
        store.fail_after(1);
        let error = object.write_back(0..u64::MAX, |_| false);
        assert_eq!(error.map_err(|e| e.errno()), Err(5));
        let writes = [Call::Write(0..3, 3 * P), Call::Write(40..41, 1)];
        assert_eq!(store.calls(), writes);
        assert!((0..3).all(|index| object.is_dirty(index)) && !object.is_dirty(40));
        assert_eq!(object.write_back(0..u64::MAX, |_| false), Ok(()));
        assert_eq!(store.bytes(2), vec![1; P]);
        // A store that cannot be cut off forbids growth, and nothing else.
        object.truncate(PAGE, |_| {}).expect("truncate");
        store.fail_after(1);
        assert!(object.truncate(3 * PAGE, |_| {}).is_err());
        store.fail_after(1);
        assert!(object.write(PAGE, &[1]).is_err());
        store.fail_after(1);
        assert!(object.write_back(0..9, |_| false).is_err());
        assert_eq!(object.size(), PAGE);
        assert_eq!(first_word(&object, 0), Ok(0x0101_0101_0101_0101));
        object.truncate(3 * PAGE, |_| {}).expect("grow");
        assert_eq!(first_word(&object, 2), Ok(0));
    });
}

#[test]
fn only_clean_pages_of_nobody_are_evicted() {
    with_vm(|vm| {
        let (store, object) = file(vm, 2);
        let page = object.page(0, Pattern::Random).expect("a page");
        let hold = vm.page_ref(page.frame()).expect("held");
        let evict = || vm.home(&hold).expect("the object's page").evict();
        assert!(!evict(), "a task has it");
        drop(page);
        object.write(0, &[5]).expect("write");
        assert!(!evict(), "it is dirty");
        assert_eq!(first_word(&object, 0).map(|word| word & 0xff), Ok(5));
        let home = vm.home(&hold).expect("a page");
        home.write_back(|_| false).expect("write back");
        assert_eq!(store.first_word(0).map(|word| word & 0xff), Some(5));
        assert!(evict());
        assert!(vm.home(&hold).is_none() && object.resident(0).is_none());
        assert_eq!(used(vm), 1, "the holder's");
        drop(hold);
        assert_eq!(used(vm), 0);
        assert_eq!(first_word(&object, 0).map(|word| word & 0xff), Ok(5));
    });
}

#[test]
fn a_reclaimer_writes_dirty_neighbours_too() {
    with_vm(|vm| {
        let (store, object) = file(vm, 8);
        let written = object.write(2 * PAGE, &vec![7; 3 * P]);
        written.expect("write");
        store.calls();
        let hold = held(&object, 3);
        let mut asked = 0;
        let clean = |_: &_| {
            asked += 1;
            false
        };
        let home = vm.home(&hold).expect("a page");
        home.write_back(clean).expect("write back");
        assert_eq!(store.calls(), [Call::Write(3..5, 2 * P)]);
        assert_eq!(asked, 3, "the clean one behind, too");
        assert!(object.is_dirty(2) && !object.is_dirty(3) && !object.is_dirty(4));
    });
}

#[test]
fn shared_memory_comes_back_from_the_swap_space() {
    with_vm(|vm| {
        let slots = Arc::new(TestStore::default());
        // SAFETY: no other object has these slots.
        let object = unsafe { Object::with_slots(vm, slots.clone(), 3 * PAGE) }.expect("an object");
        object.write(0, &vec![3; 3 * P]).expect("write");
        let swap_out = |index: u64| {
            let hold = held(&object, index);
            let slot = slots.slot(vm.machine(), hold.frame());
            assert!(
                // SAFETY: the slot is the object's alone, and has the page's content.
                !unsafe { vm.home(&hold).expect("a page").swap_out(slot) },
                "dirty"
            );
            // Like a reclaimer, this takes the flag, and has written the page since.
            assert!(is_dirty_when_unmapped(vm, hold.frame()));
            // SAFETY: the slot is the object's alone, and has the page's content.
            assert!(unsafe { vm.home(&hold).expect("a page").swap_out(slot) });
        };
        (0..3).for_each(swap_out);
        assert_eq!((used(vm), slots.slots_used()), (0, 3));
        assert_eq!(object.resident_pages(), 0);
        slots.fail_after(1);
        assert!(matches!(first_word(&object, 1), Err(Error::Io(_))));
        assert_eq!(first_word(&object, 1), Ok(0x0303_0303_0303_0303));
        assert!(object.is_dirty(1), "its slot is gone");
        assert_eq!((used(vm), slots.slots_used()), (1, 2));
        // The tail of a page in the swap space is zeroed, too, and the pages cut off are freed.
        let mut removed = 0;
        object.truncate(5, |_| removed += 1).expect("truncate");
        assert_eq!(removed, 1, "page 1; page 2 was in the swap space");
        assert_eq!(slots.slots_used(), 0);
        object.truncate(PAGE, |_| {}).expect("grow");
        assert_eq!(read(&object, 0, 8), [3, 3, 3, 3, 3, 0, 0, 0]);
        swap_out(0);
        drop(object);
        assert_eq!(slots.slots_used(), 0);
    });
}

#[test]
fn a_truncated_page_is_in_no_table() {
    with_vm(|vm| {
        let (store, object) = file(vm, 4);
        let pmap = Pmap::new(vm).expect("a pmap");
        pmap.activate();
        let at = 1 << 40;
        let enter = |index: u64| {
            let page = object.page(index, Pattern::Random).expect("a page");
            let address = at + index as usize * P;
            let hold = vm.hold(page.frame()).expect("held");
            pmap.enter(address, &hold, Prot::READ_WRITE).expect("enter");
            assert!(object.still_has(index, page.frame()));
            address
        };
        let (first, last) = (enter(0), enter(3));
        // SAFETY: the CPU translates by tables that stay during the call.
        unsafe { vm.machine().store(last, 5) }.expect("store");
        // SAFETY: the CPU translates by tables that stay during the call.
        unsafe { vm.machine().store(first, 6) }.expect("store");
        let mut removed = 0;
        let remove = |hold: &_| removed += vm.remove_all(hold).mappings;
        object.truncate(2 * PAGE, remove).expect("truncate");
        assert_eq!(removed, 1);
        assert!(pmap.lookup(last).is_none() && pmap.lookup(first).is_some());
        let hold = held(&object, 0);
        assert!(!vm.home(&hold).expect("a page").evict(), "it is mapped");
        // The mapping alone knows that the page is dirty.
        assert!(!object.is_dirty(0));
        store.calls();
        let clean = |hold: &_| vm.remove_all(hold).dirty;
        object.write_back(0..u64::MAX, clean).expect("write back");
        let calls = [Call::Truncate(2 * PAGE), Call::Write(0..1, P)];
        assert_eq!(store.calls(), calls);
        assert_eq!(store.first_word(0), Some(6));
        assert!(vm.home(&hold).expect("a page").evict());
    });
}
