//! Fork and copy-on-write, on hosted memory: with tables that are shared, and copied.

mod shared {
    type Tested = vm::Best;
    include!("cases.rs");
    include!("tables.rs");
}

mod copied {
    type Tested = vm::policy::Copying;
    include!("cases.rs");
    include!("tables.rs");
}

/// What the two differ in: how many frames a child takes.
#[test]
fn a_shared_table_takes_no_frame() {
    use hosted::Hosted;
    use vm::{Policies, Prot, Space, Vm};
    fn taken<P: Policies<Hosted>>() -> usize {
        let machine = Hosted::with_memory(1, 32 << 20).expect("memory");
        machine.clone().on_cpu(0, || {
            let vm = Vm::<Hosted, P>::new(machine);
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
    assert_eq!(taken::<vm::Best>(), 3);
    assert_eq!(taken::<vm::policy::Copying>(), 3 + 4 * 3);
}
