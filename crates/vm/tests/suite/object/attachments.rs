//! Attachments: the mappings of an object.

use super::pages::{TAG, file, used, with_vm};
use crate::world::{File, P, pages};
use vm::Error;
use vm::object::{Attached, Pattern};

#[test]
fn attachments_say_who_maps_what() {
    with_vm(|vm| {
        let (_store, object) = file(vm, 100);
        let range = pages(7 << 30, 10);
        let owner = |number: usize| std::ptr::without_provenance::<()>(number);
        let seen = |object: &File| {
            let mut owners = Vec::new();
            object.for_each_attachment(|a| owners.push(a.owner().addr()));
            owners.sort();
            owners
        };
        // SAFETY: here and below, no page is looked for at its mappings, so the owners are not
        // used.
        let (one, two) = unsafe {
            let one = object.attach(owner(1), range, 40).expect("attach");
            let two = one.inherit(owner(2)).expect("inherit");
            (one, two)
        };
        for attachment in [&one, &two] {
            assert_eq!(attachment.range(), range);
            assert_eq!(attachment.index(range.start + 3 * P + 8), 43);
            assert_eq!(attachment.address(40), Some(range.start));
            assert_eq!(attachment.address(49), Some(range.end - P));
            assert_eq!([39, 50].map(|index| attachment.address(index)), [None; 2]);
            assert!(std::ptr::eq(attachment.object(), &*object));
        }
        assert_eq!(seen(&object), [1, 2]);
        // SAFETY: the reference that was just given away.
        let again = unsafe { Attached::from_raw(one.clone().into_raw()) };
        assert!(again == one && one != two);
        drop(one);
        assert_eq!(seen(&object), [1, 2]);
        drop(again);
        assert_eq!(seen(&object), [2]);
        let far = (i64::MAX as u64 >> 12) - 3;
        // SAFETY: nothing is attached: the offset is refused.
        let error = unsafe { object.attach(owner(3), range, far) }.err();
        assert!(matches!(error, Some(Error::Invalid { .. })));
    });
}

#[test]
fn mappings_keep_a_closed_file() {
    with_vm(|vm| {
        let (store, object) = file(vm, 100);
        let range = pages(7 << 30, 10);
        // SAFETY: without an owner.
        let attach = || unsafe { object.attach(std::ptr::null(), range, 0) }.expect("attach");
        // SAFETY: without an owner.
        let inherit = |one: &Attached<_>| unsafe { one.inherit(std::ptr::null()) };
        let (one, two) = (attach(), attach());
        object.write(0, &[8]).expect("write");
        drop(object);
        drop(two);
        assert_eq!(used(vm), 16);
        // Another CPU inherits, after the last handle has gone.
        let machine = vm.machine().clone();
        let child = machine.on_cpu(1, || {
            let child = inherit(&one).expect("inherit");
            drop(inherit(&one));
            child
        });
        drop(one);
        assert_eq!(used(vm), 16);
        assert!(child.object().page(3, Pattern::Random).is_ok());
        assert_eq!(store.first_word(0), Some(TAG), "no write-back yet");
        drop(child);
        assert_eq!(used(vm), 0);
        assert_eq!(store.first_word(0).map(|word| word & 0xff), Some(8));
    });
}
