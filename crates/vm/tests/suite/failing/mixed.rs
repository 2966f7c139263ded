//! A space with a bit of everything.

use super::{Disk, World, check_empty, pages};
use crate::world::{File, MIB, P, System, TestSpace, active, world};
use hosted::Hosted;
use machine::VaRange;
use vm::object::Object;
use vm::{Advice, At, Best, Flags, HEAP_START, Prot, Request};

/// Pages of each mapping.
pub const PAGES: usize = 8;
const BYTES: usize = PAGES * P;
/// Where the stack ends.
const STACK: usize = 1 << 39;

/// Dropped in this order.
pub struct Mixed {
    pub space: TestSpace,
    /// Private memory: pages 5 to 7 are in the swap space, 0 was never touched.
    pub private: usize,
    /// The file, shared: page 1 is dirty.
    pub shared: usize,
    /// The file, private: page 2 is a copy.
    pub copied: usize,
    /// Shared memory, half of it touched; pages 2 and 3 are in the swap space.
    pub memory: usize,
    /// One page that grows down.
    pub stack: usize,
    pub file: File,
    pub disk: Disk,
    swap: Disk,
    pub vm: System,
}

impl Mixed {
    pub const BYTES: usize = BYTES;

    /// An address that is free, but near enough to need no table but its own.
    pub fn far(&self) -> usize {
        self.private + 256 * MIB
    }

    /// All of a mapping.
    pub fn whole(at: usize) -> VaRange {
        VaRange::sized(at, BYTES)
    }

    /// A file of eight pages, all of them on disk.
    fn file(vm: &System, disk: &Disk) -> File {
        let file = Object::file(vm, disk.clone(), 0).expect("an object");
        for page in 0..PAGES as u64 {
            let word = (200 + page).to_le_bytes();
            file.write(page * P as u64, &word).expect("write");
        }
        file.set_size(BYTES as u64).expect("set_size");
        let all = 0..PAGES as u64;
        file.write_back(all, |_| false).expect("write back");
        file
    }

    fn fill(&self) {
        let store = |at: usize, page: usize, value: u64| {
            let stored = self.space.store(at + page * P, value);
            stored.expect("store");
        };
        (1..PAGES).for_each(|page| store(self.private, page, 100 + page as u64));
        store(self.shared, 1, 301);
        store(self.copied, 2, 402);
        (0..4).for_each(|page| store(self.memory, page, 500 + page as u64));
        store(HEAP_START, 0, 600);
        store(self.stack, 0, 700);
        for out in [pages(self.private, 5, 3), pages(self.memory, 2, 2)] {
            self.space.advise(out, Advice::PageOut).expect("advise");
        }
        // The tables on the way to where tests map something, but not its own.
        let near = self.far() + 64 * MIB;
        let near = Request::anonymous(P, Prot::READ_WRITE).at(At::Free(near));
        let near = self.space.map_as(&near).expect("map");
        store(near, 0, 1);
        let unmapped = self.space.unmap(pages(near, 0, 1));
        unmapped.expect("unmap");
    }

    fn word(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        let read = self.space.copy_in(at, &mut bytes);
        read.unwrap_or_else(|error| panic!("{at:#x}: {error}"));
        u64::from_le_bytes(bytes)
    }
}

impl World for Mixed {
    fn new() -> Self {
        let (disk, swap) = (Disk::default(), Disk::default());
        let vm = world(8).cpus(1).swap_in(swap.clone(), 256).vm();
        let file = Self::file(&vm, &disk);
        let space = active(&vm);
        let of_file = || Request::object(&file, 0, BYTES, Prot::READ_WRITE).expect("a request");
        let anonymous = || Request::anonymous(BYTES, Prot::READ_WRITE);
        let stack = Request::anonymous(P, Prot::READ_WRITE)
            .at(At::Fixed(STACK - P))
            .with(Flags::GROWS_DOWN);
        let map = |request: Request<'_, Best<Hosted>>| space.map_as(&request).expect("map");
        let [private, shared, copied, memory, stack] = [
            map(anonymous()),
            map(of_file().shared()),
            map(of_file()),
            map(anonymous().shared()),
            map(stack),
        ];
        let grown = space.set_break(HEAP_START + 2 * P);
        grown.expect("set_break");
        let world = Mixed {
            space,
            private,
            shared,
            copied,
            memory,
            stack,
            file,
            disk,
            swap,
            vm,
        };
        world.fill();
        world
    }

    fn vm(&self) -> &System {
        &self.vm
    }

    fn space(&self) -> &TestSpace {
        &self.space
    }

    fn disk(&self) -> Option<&Disk> {
        Some(&self.disk)
    }

    fn swap(&self) -> &Disk {
        &self.swap
    }

    fn check_content(&self, what: &str) {
        let check = |at: usize, page: usize, expected: u64| {
            let word = self.word(at + page * P);
            assert_eq!(word, expected, "{what}: page {page} of {at:#x}");
        };
        for page in 0..PAGES {
            let number = page as u64;
            let written = if page == 1 { 301 } else { 200 + number };
            check(self.private, page, if page == 0 { 0 } else { 100 + number });
            check(self.shared, page, written);
            check(self.copied, page, if page == 2 { 402 } else { written });
            check(self.memory, page, if page < 4 { 500 + number } else { 0 });
        }
        check(HEAP_START, 0, 600);
        check(HEAP_START, 1, 0);
        check(self.stack, 0, 700);
    }

    fn tear_down(self, what: &str) {
        let Mixed {
            space,
            file,
            disk,
            vm,
            ..
        } = self;
        drop(space);
        drop(file);
        check_empty(&vm, what);
        let again = Object::<Best<Hosted>>::file(&vm, disk, BYTES as u64);
        let mut bytes = [0; 8];
        let read = again.expect("an object").read(P as u64, &mut bytes);
        let word = (read, u64::from_le_bytes(bytes));
        assert_eq!(word, (Ok(8), 301), "{what}: disk");
    }
}
