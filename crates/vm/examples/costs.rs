//! Operations on hosted memory, one CPU, warm, for counting instructions:
//! `costs CASE ITERATIONS`.
//!
//! `tests/costs.rs` runs each case under callgrind and holds it to the figures of
//! `docs/costs.md`. Callgrind counts only instructions within [`counted`], so a case may prepare
//! each iteration as it likes.

use hosted::Hosted;
use machine::{Access, Frame, Memory, PAGE_SIZE, PageFault, Topology, VaRange};
use std::hint::black_box;
use std::sync::Arc;
use vm::object::{Object, ObjectRef};
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::{Advice, At, Best, Move, Options, Prot, Request, Space, Vm};

const MIB: usize = 1 << 20;
/// Pages that an iteration touches, where it touches several: half a leaf table.
const PAGES: usize = 256;
/// Pages of a file that a read fault maps.
const BLOCK: usize = 16;
/// Mappings of one page.
const SHARERS: usize = 20_000;
/// Where they are.
const START: usize = 1 << 42;
/// Pages of the space that forks.
const LARGE: usize = 100 * MIB / PAGE_SIZE;

type System = Arc<Vm<Best<Hosted>>>;
type TestSpace = Space<Best<Hosted>>;

fn main() {
    let mut args = std::env::args().skip(1);
    let case = args.next().unwrap_or_default();
    let iterations: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(1);
    if case == "observer" {
        println!("{}", std::any::type_name::<sync::watch::DefaultObserver>());
        return;
    }
    let vm = system();
    let Some(mut iterate) = case_of(&case, &vm) else {
        eprintln!("costs: unknown case '{case}'");
        std::process::exit(2);
    };
    (0..iterations).for_each(|_| iterate());
}

/// Runs the operation that callgrind counts.
#[inline(never)]
fn counted<R>(operation: impl FnOnce() -> R) -> R {
    black_box(operation())
}

/// One iteration of `case`.
fn case_of<'a>(case: &str, vm: &'a System) -> Option<Box<dyn FnMut() + 'a>> {
    Some(match case {
        // SAFETY: the frame is the test's.
        "zero" => alone(vm, |vm, frame| unsafe { vm.machine().zero(frame) }),
        // SAFETY: the frame is the test's.
        "copy" => alone(vm, |vm, frame| unsafe {
            vm.machine().copy(frame, Frame(0))
        }),
        "map-unmap" => map_unmap(vm),
        "first-touch" => first_touch(vm),
        "read-shared" => file_fault(vm, true),
        "read-private" => file_fault(vm, false),
        "copy-on-write" => write_after_fork(vm, true),
        "reuse" => write_after_fork(vm, false),
        "fork-exit" => fork_exit(vm, LARGE),
        "fork-exit-empty" => fork_exit(vm, 0),
        "protect" => protect(vm),
        "unmap-touched" => unmap_touched(vm),
        "unmap-pages" => unmap_pages(vm),
        "discard" => discard(vm),
        "move" => remap_moving(vm),
        "grow" => remap_growing(vm),
        "unshare" => unshare(vm),
        "walk" => walk(vm, 0),
        "walk-past" => walk(vm, 1),
        "page-out" => page_out_and_in(vm, true),
        "swap-in" => page_out_and_in(vm, false),
        "incore" => of_a_page(vm, |space, at| drop(space.incore(page(at)))),
        "copy-in" => of_a_page(vm, |space, at| {
            let copied = space.copy_in(at, &mut [0; 8]);
            copied.expect("a page");
        }),
        _ => return None,
    })
}

fn system() -> System {
    let machine = Hosted::with_options(hosted::Options {
        watched: false,
        ..hosted::Options::new(1, 192 * MIB)
    })
    .expect("memory");
    machine.attach(0);
    let swap = SwapSpace::new(machine.cpus(), Box::new(MemoryPager::new()), 1 << 14);
    let options = Options {
        swap_space: Some(swap.expect("a swap space")),
        ..Options::default()
    };
    Vm::with_options(machine, options).expect("memory for the VM")
}

fn space(vm: &System) -> TestSpace {
    let space = Space::new(vm).expect("a space");
    space.activate();
    space
}

fn map(space: &TestSpace, bytes: usize) -> usize {
    space.map(bytes, Prot::READ_WRITE).expect("map")
}

fn page(at: usize) -> VaRange {
    VaRange::sized(at, PAGE_SIZE)
}

/// The addresses of `count` pages.
fn pages(at: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |page| at + page * PAGE_SIZE)
}

fn touch(space: &TestSpace, at: usize, count: usize) {
    pages(at, count).for_each(|at| space.store(at, 1).expect("store"));
}

/// Counts the VM's part of a fault for each page: not the machine's walk, nor the access.
fn count_faults(space: &TestSpace, at: usize, count: usize, access: Access, present: bool) {
    for address in pages(at, count) {
        let fault = PageFault {
            address,
            access,
            present,
        };
        counted(|| space.fault(fault)).expect("fault");
    }
}

type Case<'a> = Box<dyn FnMut() + 'a>;

fn alone<'a>(vm: &'a System, operate: impl Fn(&System, Frame) + 'a) -> Case<'a> {
    Box::new(move || counted(|| operate(vm, Frame(1))))
}

fn map_unmap(vm: &System) -> Case<'_> {
    let space = space(vm);
    Box::new(move || {
        counted(|| {
            let at = map(&space, 128 * MIB);
            space.unmap(VaRange::sized(at, 128 * MIB)).expect("unmap");
        });
    })
}

fn first_touch(vm: &System) -> Case<'_> {
    let space = space(vm);
    let at = map(&space, 2 * MIB);
    touch(&space, at, PAGES);
    Box::new(move || {
        let range = VaRange::sized(at, 2 * MIB);
        space.discard(range).expect("discard");
        count_faults(&space, at, PAGES, Access::Write, false);
    })
}

fn file(vm: &System) -> ObjectRef<Best<Hosted>> {
    let store = Arc::new(MemoryPager::<Hosted>::new());
    let file = Object::file(vm, store, 0).expect("an object");
    for index in 0..PAGES as u64 {
        let written = file.write(index * PAGE_SIZE as u64, &[1; PAGE_SIZE]);
        written.expect("write");
    }
    file
}

fn file_fault(vm: &System, shared: bool) -> Case<'_> {
    let (space, file) = (space(vm), file(vm));
    let bytes = PAGES * PAGE_SIZE;
    let request = Request::object(&file, 0, bytes, Prot::READ_WRITE).expect("a request");
    let request = if shared { request.shared() } else { request };
    let at = space.map_as(&request).expect("map");
    Box::new(move || {
        space.discard(VaRange::sized(at, bytes)).expect("discard");
        for block in (0..PAGES).step_by(BLOCK) {
            count_faults(&space, at + block * PAGE_SIZE, 1, Access::Read, false);
        }
    })
}

/// The parent writes memory it has shared with a child, which is still there or not.
fn write_after_fork(vm: &System, with_child: bool) -> Case<'_> {
    let space = space(vm);
    let at = map(&space, 2 * MIB);
    touch(&space, at, PAGES);
    Box::new(move || {
        let child = space.fork().expect("fork");
        let child = with_child.then_some(child);
        count_faults(&space, at, PAGES, Access::Write, true);
        drop(child);
    })
}

fn fork_exit(vm: &System, touched: usize) -> Case<'_> {
    let space = space(vm);
    if touched > 0 {
        let at = map(&space, touched * PAGE_SIZE);
        touch(&space, at, touched);
    }
    Box::new(move || counted(|| drop(space.fork().expect("fork"))))
}

/// One page of many loses and gets back the right to be written.
fn protect(vm: &System) -> Case<'_> {
    let space = space(vm);
    let at = map(&space, 2 * MIB);
    touch(&space, at, PAGES);
    Box::new(move || {
        counted(|| {
            space.protect(page(at), Prot::READ).expect("protect");
            space.protect(page(at), Prot::READ_WRITE).expect("protect");
        });
    })
}

fn unmap_touched(vm: &System) -> Case<'_> {
    let space = space(vm);
    Box::new(move || {
        let at = map(&space, PAGE_SIZE);
        touch(&space, at, 1);
        counted(|| space.unmap(page(at))).expect("unmap");
    })
}

fn unmap_pages(vm: &System) -> Case<'_> {
    let space = space(vm);
    Box::new(move || {
        let at = map(&space, 2 * MIB);
        touch(&space, at, PAGES);
        counted(|| space.unmap(VaRange::sized(at, 2 * MIB))).expect("unmap");
    })
}

fn discard(vm: &System) -> Case<'_> {
    let space = space(vm);
    let at = map(&space, 2 * MIB);
    Box::new(move || {
        touch(&space, at, 1);
        counted(|| space.discard(page(at))).expect("discard");
    })
}

fn remap_moving(vm: &System) -> Case<'_> {
    let space = space(vm);
    let mut at = map(&space, 8 * MIB);
    space
        .unmap(VaRange::sized(at + MIB, 7 * MIB))
        .expect("unmap");
    touch(&space, at, PAGES);
    let places = [at, at + 4 * MIB];
    Box::new(move || {
        let to = if at == places[0] {
            places[1]
        } else {
            places[0]
        };
        let old = VaRange::sized(at, MIB);
        at = counted(|| space.remap(old, MIB, Move::To(to))).expect("remap");
    })
}

fn remap_growing(vm: &System) -> Case<'_> {
    let space = space(vm);
    let at = map(&space, MIB);
    Box::new(move || {
        let old = VaRange::sized(at, MIB);
        let grown = counted(|| space.remap(old, 2 * MIB, Move::Never));
        grown.expect("remap");
        let rest = VaRange::sized(at + MIB, MIB);
        space.unmap(rest).expect("unmap");
    })
}

/// Many mappings of the first page of `file`.
fn share(space: &TestSpace, file: &ObjectRef<Best<Hosted>>) {
    for at in pages(START, SHARERS) {
        let request = Request::object(file, 0, PAGE_SIZE, Prot::READ).expect("a request");
        let request = request.shared().at(At::Free(at));
        space.map_as(&request).expect("map");
    }
}

/// A look at the accessed bits of page `index`, where the first has many mappings, half of them
/// used, and the second has one.
fn walk(vm: &System, index: u64) -> Case<'_> {
    let (space, file) = (space(vm), file(vm));
    share(&space, &file);
    let request = Request::object(&file, PAGE_SIZE as u64, PAGE_SIZE, Prot::READ);
    let request = request.expect("a request").shared();
    let other = space.map_as(&request).expect("map");
    space.load(other).expect("load");
    for at in pages(START, SHARERS).step_by(2) {
        space.load(at).expect("load");
    }
    let held = vm.hold(file.resident(index).expect("in memory"));
    let held = held.expect("held");
    Box::new(move || {
        space.load(START).expect("load");
        counted(|| vm.test_referenced(&held));
    })
}

/// All mappings of one page go, the oldest first.
fn unshare(vm: &System) -> Case<'_> {
    let (space, file) = (space(vm), file(vm));
    share(&space, &file);
    Box::new(move || {
        for at in pages(START, SHARERS) {
            space.load(at).expect("load");
        }
        for at in pages(START, SHARERS) {
            counted(|| space.discard(page(at))).expect("discard");
        }
    })
}

/// A page goes out and comes back; one of the two is counted.
fn page_out_and_in(vm: &System, out: bool) -> Case<'_> {
    let space = space(vm);
    let at = map(&space, 2 * MIB);
    touch(&space, at, 2);
    Box::new(move || {
        touch(&space, at, 1);
        let go = || space.advise(page(at), Advice::PageOut);
        if out { counted(go) } else { go() }.expect("advise");
        if out {
            space.load(at).map(drop).expect("load")
        } else {
            count_faults(&space, at, 1, Access::Read, false)
        }
    })
}

fn of_a_page<'a>(vm: &'a System, operate: impl Fn(&TestSpace, usize) + 'a) -> Case<'a> {
    let space = space(vm);
    let at = map(&space, 2 * MIB);
    touch(&space, at, 1);
    Box::new(move || counted(|| operate(&space, at)))
}
