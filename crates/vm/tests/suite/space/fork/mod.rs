//! Fork and copy-on-write, with tables that are shared, and copied.

mod concurrent;

use crate::world::{P, SLOT, world};
use vm::Prot;
use vm::system::ForkTables;

mod shared {
    const TABLES: vm::system::ForkTables = vm::system::ForkTables::Shared { from: 32 };
    include!("cases.rs");
}

mod copied {
    const TABLES: vm::system::ForkTables = vm::system::ForkTables::Copied;
    include!("cases.rs");
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
