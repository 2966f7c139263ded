//! Fork and copy-on-write, on hosted memory: with tables that are shared, and copied.

mod shared {
    const TABLES: vm::system::ForkTables = vm::system::ForkTables::Shared { from: 32 };
    include!("cases.rs");
    include!("tables.rs");
}

mod copied {
    const TABLES: vm::system::ForkTables = vm::system::ForkTables::Copied;
    include!("cases.rs");
    include!("tables.rs");
}

/// The difference between the two: how many frames a child takes.
#[test]
fn a_shared_table_takes_no_frame() {
    use hosted::Hosted;
    use vm::system::ForkTables;
    use vm::{Best, Options, Prot, Space, Vm};
    fn taken(fork_tables: ForkTables) -> usize {
        let options = Options {
            fork_tables,
            ..Options::default()
        };
        let machine = Hosted::with_memory(1, 32 << 20).expect("memory");
        machine.clone().on_cpu(0, || {
            let vm = Vm::<Best<Hosted>>::with_options(machine, options).expect("memory for the VM");
            let parent = Space::new(&vm).expect("a space");
            parent.activate();
            let at = parent.map(8 << 20, Prot::READ_WRITE).expect("map");
            for page in 0..8 << 8 {
                parent.store(at + page * 4096, 1).expect("store");
            }
            let before = vm.frames().free_count();
            let _child = parent.fork().expect("fork");
            before - vm.frames().free_count()
        })
    }
    // Root and two tables below; or for each 2 MiB a leaf table and two PV tables too.
    assert_eq!(taken(ForkTables::default()), 3);
    assert_eq!(taken(ForkTables::Copied), 3 + 4 * 3);
}
