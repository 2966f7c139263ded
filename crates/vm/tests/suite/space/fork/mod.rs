//! Fork and copy-on-write, with tables that are shared, and copied.

mod cases;
mod concurrent;

use crate::world::{P, SLOT, world};
use vm::Prot;
use vm::system::ForkTables;

/// Defines a test of each case with tables that are shared, and one with tables that are copied.
macro_rules! tests {
    ($($case:ident)*) => {
        mod shared {
            $(#[test] fn $case() { super::cases::$case(super::ForkTables::Shared { from: 32 }) })*
        }
        mod copied {
            $(#[test] fn $case() { super::cases::$case(super::ForkTables::Copied) })*
        }
    };
}

tests! {
    a_page_that_may_only_be_written_is_read_where_it_is_shared
    who_is_left_alone_writes_without_a_copy
    what_is_resident_and_whose_is_exact
    whoever_goes_first_the_others_keep_it
    who_is_left_alone_has_his_pages_without_a_copy
    half_a_slot_goes_in_one_of_them
    a_page_that_is_removed_is_removed_from_all
    a_table_that_others_have_emptied_is_left
    pages_out_are_out_in_all_and_come_back_to_each
    who_can_not_leave_has_changed_nothing
    a_family_may_be_larger_than_a_table_has_room_for
    who_leaves_is_gone_from_all_cpus
}

/// The difference between the two: how many frames a child takes.
#[test]
fn a_shared_table_takes_no_frame() {
    let taken = |fork_tables| {
        let vm = world(32)
            .with(|options| options.fork_tables = fork_tables)
            .apart();
        vm.machine().on_cpu(0, || {
            let parent = vm::Space::new(&vm).expect("a space");
            parent.activate();
            let at = parent.map(4 * SLOT, Prot::READ_WRITE).expect("map");
            for page in (at..at + 4 * SLOT).step_by(P) {
                parent.store(page, 1).expect("store");
            }
            let before = vm.frames().free_count();
            let _child = parent.fork().expect("fork");
            before - vm.frames().free_count()
        })
    };
    // Root and two tables below; or for each 2 MiB a leaf table and two PV tables too.
    assert_eq!(taken(ForkTables::default()), 3);
    assert_eq!(taken(ForkTables::Copied), 3 + 4 * 3);
}
