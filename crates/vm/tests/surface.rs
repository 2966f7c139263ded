//! The whole public surface, called by safe code with the worst values of its types, and with those
//! of another VM: each call is done, refused by an error, or refused by the panic that its
//! documentation names. Then nothing is lost of either VM, and the other one's memory is as it was.

#![forbid(unsafe_code)]

#[path = "suite/dice.rs"]
mod dice;

use dice::Dice;
use hosted::Hosted;
use machine::{Access, Frame, Ordering, PAGE_SIZE, PageFault, Topology, VaRange, pte};
use std::any::Any;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use vm::object::{Object, ObjectRef, Pattern};
use vm::pager::MemoryPager;
use vm::swap::SwapSpace;
use vm::{
    Advice, At, Best, Bring, Error, Flags, HEAP_START, HIGHEST, Hold, LOWEST, Limit, Mappings,
    Move, Options, Pmap, Prot, Request, Space, Superpages, Vm, linux, proc,
};

type S = Best<Hosted>;
type TestVm = Arc<Vm<S>>;

const P: usize = PAGE_SIZE;
/// Frames of a machine, and slots of its swap space.
const FRAMES: usize = 700;
const SLOTS: u32 = 500;
/// Where most mappings are.
const AT: usize = 1 << 40;
/// The content of the other VM's memory.
const THEIRS: u64 = 0x7ea;

fn make_vm(machine: &Hosted) -> TestVm {
    let swap = SwapSpace::new(machine.cpus(), Box::new(MemoryPager::new()), SLOTS);
    let asked = AtomicU64::new(0);
    let options = Options {
        swap_pages: Some(4_000),
        swap_space: Some(swap.expect("a table")),
        superpages: Superpages::Always,
        // A task has a signal to handle now and then.
        interrupted: Some(Box::new(move || {
            asked.fetch_add(1, Ordering::Relaxed) % 3 == 2
        })),
        ..Options::default()
    };
    Vm::with_options(machine.clone(), options).expect("a VM")
}

/// Sees that nothing of the VM's memory is in use.
fn check_unused(vm: &TestVm) {
    let frames = vm.frames();
    assert_eq!(frames.free_count(), frames.total(), "frames are lost");
    assert_eq!(vm.committed(), 0, "committed pages are lost");
    let slots = vm.swap_slots().expect("a swap space");
    assert_eq!((slots.used, slots.cached), (0, 0), "slots are lost");
}

/// What another VM has: values to be confused with those of the VM under test.
struct Others {
    machine: Hosted,
    vm: TestVm,
    space: Space<S>,
    object: ObjectRef<S>,
    hold: Hold<S>,
}

impl Others {
    fn new() -> Self {
        let machine = Hosted::with_memory(1, FRAMES * P).expect("memory");
        machine.on_cpu(0, || {
            let vm = make_vm(&machine);
            let space = Space::new(&vm).expect("a space");
            space.activate();
            let range = VaRange::sized(AT, 4 * P);
            space.map_fixed(range, Prot::READ_WRITE).expect("mapped");
            (0..4).for_each(|page| space.store(AT + page * P, THEIRS).expect("stored"));
            let object = vm.shared_memory(4 * P as u64).expect("an object");
            object.write(0, &THEIRS.to_ne_bytes()).expect("written");
            let hold = vm.new_page().expect("a page");
            hold.word(0).store(THEIRS, Ordering::Relaxed);
            Others {
                machine: machine.clone(),
                vm,
                space,
                object,
                hold,
            }
        })
    }

    /// Sees that all is as it was, and goes.
    fn check(self) {
        let machine = self.machine.clone();
        machine.on_cpu(0, move || {
            let Others {
                vm,
                space,
                object,
                hold,
                ..
            } = self;
            space.activate();
            for page in 0..4 {
                assert_eq!(space.load(AT + page * P), Ok(THEIRS), "their memory");
            }
            let mut bytes = [0; 8];
            assert_eq!(object.read(0, &mut bytes), Ok(8));
            assert_eq!(u64::from_ne_bytes(bytes), THEIRS, "their object");
            assert_eq!(hold.word(0).load(Ordering::Relaxed), THEIRS, "their page");
            drop((space, object, hold));
            check_unused(&vm);
        });
    }
}

/// The text of a panic.
fn text(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast_ref::<&str>().expect("a text").to_string(),
    }
}

thread_local! {
    /// True while a panic is expected, which need not be printed.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Prints no panic that is expected.
fn print_the_unexpected() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !EXPECTED.get() {
            print(info);
        }
    }));
}

/// Sees that a call is refused by the panic that its documentation names.
#[track_caller]
fn refused<R>(call: impl FnOnce() -> R, why: &str) {
    EXPECTED.set(true);
    let panic = catch_unwind(AssertUnwindSafe(|| drop(call())));
    EXPECTED.set(false);
    let text = text(panic.expect_err(why));
    assert!(text.contains(why), "{text}");
}

fn is_invalid<T>(result: Result<T, Error>) -> bool {
    matches!(result, Err(Error::Invalid { .. }))
}

/// A caller, on a CPU, and all it has.
struct Caller<'a> {
    dice: Dice,
    vm: &'a TestVm,
    others: &'a Others,
    spaces: Vec<Space<S>>,
    pmaps: Vec<Arc<Pmap<S>>>,
    objects: Vec<ObjectRef<S>>,
    holds: Vec<Hold<S>>,
}

impl Caller<'_> {
    fn below(&mut self, end: usize) -> usize {
        self.dice.below(end as u64) as usize
    }

    fn one<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn address(&mut self) -> usize {
        let near = AT + self.below(600) * P;
        let odd = near + self.below(P);
        let any = self.dice.below(u64::MAX) as usize;
        let bad = [
            0,
            P,
            LOWEST - P,
            LOWEST,
            HEAP_START,
            HIGHEST - P,
            HIGHEST,
            pte::USER_END - 1,
            pte::USER_END,
            1 << 63,
            usize::MAX - P,
            usize::MAX & !(P - 1),
            usize::MAX,
            any,
        ];
        let bad = self.one(&bad);
        self.one(&[near, near, near, near, odd, bad])
    }

    fn bytes(&mut self) -> usize {
        let few = self.below(12) * P;
        let bad = self.one(&[0, 1, P + 1, 1 << 30, 1 << 46, usize::MAX - P, usize::MAX]);
        self.one(&[few, few, few, 2 << 20, bad])
    }

    fn range(&mut self) -> VaRange {
        let (start, other, bytes) = (self.address(), self.address(), self.bytes());
        let end = self.one(&[
            start.saturating_add(bytes),
            start.wrapping_add(bytes),
            other,
        ]);
        VaRange { start, end }
    }

    /// A range for which a list of its pages has room.
    fn short_range(&mut self) -> VaRange {
        let range = self.range();
        if range.len() > 1 << 30 {
            return VaRange {
                end: range.start,
                ..range
            };
        }
        range
    }

    fn number(&mut self) -> u64 {
        let few = self.dice.below(20);
        self.one(&[
            few,
            few,
            few,
            i64::MAX as u64 >> 12,
            i64::MAX as u64,
            u64::MAX,
        ])
    }

    fn prot(&mut self) -> Prot {
        let bits = self.below(8);
        Prot::new(bits & 1 != 0, bits & 2 != 0, bits & 4 != 0)
    }

    /// Any flags, those of the VM among them.
    fn flags(&mut self) -> Flags {
        let all = [
            Flags::SHARED,
            Flags::CHARGED,
            Flags::NO_RESERVE,
            Flags::READ_ONLY,
            Flags::LOCKED,
            Flags::ON_FAULT,
            Flags::GROWS_DOWN,
            Flags::DONT_FORK,
            Flags::WIPE_ON_FORK,
            Flags::RANDOM,
            Flags::SEQUENTIAL,
            Flags::HUGE,
            Flags::NO_HUGE,
            Flags::DONT_DUMP,
            Flags::new(Prot::READ_WRITE),
        ];
        let chosen = self.dice.below(1 << all.len()) & self.dice.below(1 << all.len());
        let chosen = all
            .iter()
            .enumerate()
            .filter(|(at, _)| chosen >> at & 1 != 0);
        chosen.fold(Flags::NONE, |flags, (_, &flag)| flags | flag)
    }

    fn frame(&mut self) -> Frame {
        let any = self.below(FRAMES) as u32;
        Frame(self.one(&[any, any, FRAMES as u32, FRAMES as u32 + 7, u32::MAX]))
    }

    fn fault(&mut self) -> PageFault {
        PageFault {
            address: self.address(),
            access: self.one(&[Access::Read, Access::Write, Access::Execute]),
            present: self.below(2) == 0,
        }
    }

    fn pattern(&mut self) -> Pattern {
        self.one(&[Pattern::Normal, Pattern::Sequential, Pattern::Random])
    }

    /// Makes one call of each kind's in turn.
    fn step(&mut self) {
        match self.below(10) {
            0 => self.make(),
            1 => self.map(),
            2..=4 => self.change(),
            5 => self.look(),
            6 => self.access(),
            7 => self.object(),
            8 => self.pages(),
            _ => self.pmap(),
        }
    }

    /// Makes values, and drops some.
    fn make(&mut self) {
        let bytes = self.number();
        let at = self.below(self.spaces.len());
        match self.below(9) {
            0 => self.spaces.extend(Space::new(self.vm)),
            1 => self.spaces.extend(self.spaces[at].fork()),
            2 if self.spaces.len() > 1 => drop(self.spaces.swap_remove(at)),
            3 => self.objects.extend(self.vm.shared_memory(bytes)),
            4 => self.objects.extend(self.vm.uncharged_memory(bytes)),
            5 => self.objects.extend(Object::anonymous(
                self.vm,
                bytes.saturating_mul(P as u64 / 3),
            )),
            6 => {
                let store = Arc::new(MemoryPager::new());
                self.objects
                    .extend(Object::file(self.vm, store, bytes.saturating_mul(1_000)));
            }
            7 if !self.objects.is_empty() => {
                let at = self.below(self.objects.len());
                drop(self.objects.swap_remove(at));
            }
            _ => self.pmaps.extend(Pmap::new(self.vm)),
        }
        // Few of each.
        self.spaces.truncate(4);
        self.pmaps.truncate(3);
        self.objects.truncate(6);
        self.holds.truncate(6);
    }

    fn map(&mut self) {
        let at = self.below(self.spaces.len());
        let (address, bytes, prot) = (self.address(), self.bytes(), self.prot());
        let place = [
            At::Anywhere,
            At::Hint(address),
            At::Fixed(address),
            At::Free(address),
        ];
        let (place, flags) = (self.one(&place), self.flags());
        let offset = self.number().saturating_mul(P as u64);
        let which = self.below(self.objects.len() + 1);
        let space = &self.spaces[at];
        let theirs = Request::object(&self.others.object, 0, P, Prot::READ).expect("aligned");
        assert!(is_invalid(space.map_as(&theirs)), "their object is mapped");
        let request = match self.objects.get(which) {
            Some(object) => Request::object(object, offset, bytes, prot),
            None => Ok(Request::anonymous(bytes, prot)),
        };
        let Ok(mut request) = request else { return };
        request = request.at(place).with(flags);
        if self.dice.below(2) == 0 {
            request = request.shared();
        }
        if self.dice.below(4) == 0 {
            request = request.populated();
        }
        let space = &self.spaces[at];
        let mapped = space.map_as(&request);
        if let Some(region) = mapped.ok().and_then(|at| space.region_at(at)) {
            assert!(!region.flags.has(Flags::WIPE_ON_FORK), "a request's flags");
        }
    }

    fn change(&mut self) {
        const ADVICE: [Advice; 14] = [
            Advice::Random,
            Advice::WillNeed,
            Advice::DontNeed,
            Advice::Free,
            Advice::Remove,
            Advice::Cold,
            Advice::PageOut,
            Advice::DontFork,
            Advice::WipeOnFork,
            Advice::DontDump,
            Advice::Huge,
            Advice::NoHuge,
            Advice::PopulateRead,
            Advice::PopulateWrite,
        ];
        let at = self.below(self.spaces.len());
        let (range, bytes, to, prot) = (self.range(), self.bytes(), self.address(), self.prot());
        let place = [
            Move::Never,
            Move::IfNeeded,
            Move::To(to),
            Move::Leaving,
            Move::LeavingTo(to),
        ];
        let (place, advice) = (self.one(&place), self.one(&ADVICE));
        let bring = self.one(&[Bring::Now, Bring::OnFault]);
        let (current, future) = (self.below(2) == 0, self.below(8) == 0);
        let limit = self.one(&[
            Limit::AddressSpace,
            Limit::Data,
            Limit::Locked,
            Limit::Stack,
        ]);
        let limited = self.one(&[None, None, Some(bytes), Some(usize::MAX)]);
        let call = self.below(16);
        let space = &self.spaces[at];
        let _ = match call {
            0 | 1 => space.unmap(range),
            2 => space.protect(range, prot),
            3 | 4 => space.remap(range, bytes, place).map(drop),
            5 | 6 => space.advise(range, advice),
            7 => space.lock(range, bring),
            8 => space.unlock(range),
            9 => space.lock_all(Mappings { current, future }, bring),
            10 => {
                space.unlock_all();
                Ok(())
            }
            11 => space.set_break(self.spaces[at].current_break().wrapping_add(bytes)),
            12 => space.set_limit(limit, limited),
            13 => space.discard(range),
            14 => space.sync(range).and(space.invalidate(range)),
            _ => {
                if to % 8 == 0 {
                    space.exec();
                }
                space.map_fixed(range, prot)
            }
        };
    }

    fn look(&mut self) {
        let at = self.below(self.spaces.len());
        let (range, address, bytes) = (self.short_range(), self.address(), self.bytes());
        let (old, limit) = (self.bytes(), self.below(4));
        let place = self.one(&[Move::Never, Move::To(address), Move::Leaving]);
        let space = &self.spaces[at];
        let regions = space.regions().expect("memory");
        let footprints = space.scan(address, limit).expect("memory");
        let names = proc::Names {
            heap: space.heap(),
            stack: address,
            file: &|_| None,
        };
        let mut text = String::new();
        proc::write_maps(&regions, &names, &mut text).expect("text");
        proc::write_smaps(&footprints, &names, &mut text).expect("text");
        let places = space.page_places(range).unwrap_or_default();
        assert!(places.into_iter().map(proc::pagemap_entry).count() <= range.pages() + 1);
        let _ = (space.incore(range), space.region_at(address), space.stats());
        let _ = (
            range.pages(),
            range.common(names.heap),
            range.contains(address),
        );
        let _ = VaRange::checked(address, bytes).map(VaRange::len);
        let _ = linux::mmap(At::Fixed(address), bytes).and(linux::munmap(address, bytes));
        let _ = linux::mprotect(address, bytes).and(linux::madvise(address, bytes));
        let _ = linux::msync(address, bytes).and(linux::mincore(address, bytes));
        let _ = linux::mlock(address, bytes);
        let _ = linux::mremap(address, old, bytes, place);
    }

    fn access(&mut self) {
        let at = self.below(self.spaces.len());
        let (address, fault, count) = (self.address(), self.fault(), self.below(3 * P));
        let space = &self.spaces[at];
        let mut bytes = vec![0; count];
        let _ = space.copy_in(address, &mut bytes);
        let _ = space.copy_out(address, &bytes);
        let _ = space.fault(fault);
        let word = address & !7;
        space.activate();
        let _ = (space.load(word), space.fetch(word), space.store(word, 1));
        // No CPU of this machine runs in their space.
        refused(|| self.others.space.load(AT), "its CPU does not run");
        if let Some(other) = self.spaces.get(at + 1) {
            refused(|| other.store(word, 1), "its CPU does not run");
        }
    }

    fn object(&mut self) {
        let (offset, index, size, count) = (self.number(), self.number(), self.number(), 9_000);
        let (pattern, until) = (self.pattern(), self.number());
        let (count, frame) = (self.below(count), self.frame());
        let call = self.below(7);
        let which = self.below(self.objects.len() + 1);
        let Some(object) = self.objects.get(which) else {
            return;
        };
        let mut bytes = vec![1; count];
        match call {
            0 => drop(object.read(offset, &mut bytes)),
            1 => drop(object.write(offset.saturating_mul(1_000), &bytes)),
            2 => drop(object.set_size(size.saturating_mul(1_000))),
            3 => drop(object.truncate(size.saturating_mul(1_000), |_| {})),
            4 => drop(object.write_back(index..until, |hold| self.vm.test_modified(hold))),
            5 => {
                if let Ok(page) = object.page(index, pattern) {
                    assert!(object.still_has(index, page.frame()));
                    page.word(self.dice.below(512) as usize);
                    let home = self.vm.home(&page).expect("no other task is busy");
                    assert_eq!(home.index(), index);
                    match self.dice.below(3) {
                        0 => drop(home.evict()),
                        1 => drop(home.write_back(|hold| self.vm.test_modified(hold))),
                        _ => drop(home),
                    }
                }
            }
            _ => {
                object.for_each_attachment(|attached| {
                    let _ = (attached.index(offset as usize), attached.address(index));
                });
                let _ = (object.resident(index), object.still_has(index, frame));
                let _ = (object.is_dirty(index), object.next_present(index..until));
                let _ = (object.resident_pages(), object.present_pages());
            }
        }
    }

    fn pages(&mut self) {
        let (frame, wanted) = (self.frame(), self.below(40));
        let wanted = self.one(&[0, wanted, usize::MAX]);
        let theirs = &self.others.hold;
        match self.below(8) {
            0 => self.holds.extend(self.vm.new_page()),
            1 => self.holds.extend(self.vm.hold(frame)),
            2 => drop(self.vm.page_ref(frame)),
            3 => {
                let _ = (self.vm.reclaim(wanted), self.vm.keep_free(wanted));
            }
            4 => {
                let _ = self.vm.reclaim_tables(wanted) + self.vm.reclaim_chunks(wanted);
                self.vm.frames().drain();
            }
            5 => {
                refused(|| self.vm.remove_all(theirs), "another VM's");
                refused(|| self.vm.test_modified(theirs), "another VM's");
                refused(|| self.vm.test_referenced(theirs), "another VM's");
                let theirs = self.others.vm.page_ref(theirs.frame()).expect("held");
                refused(|| self.vm.home(&theirs).is_some(), "another VM's");
            }
            6 if !self.holds.is_empty() => {
                let at = self.below(self.holds.len());
                drop(self.holds.swap_remove(at));
            }
            _ => {
                let (at, count) = (self.below(P), self.below(P));
                let Some(hold) = self.holds.last() else {
                    return;
                };
                let mut bytes = vec![2; count];
                if at + count > P {
                    refused(|| hold.write(at, &bytes), "are not in a page");
                    refused(|| hold.read(at, &mut bytes), "are not in a page");
                    refused(|| hold.read(usize::MAX, &mut [0]), "are not in a page");
                    refused(|| hold.word(512 + at), "no word");
                } else {
                    hold.write(at, &bytes);
                    hold.read(at, &mut bytes);
                }
                let _ = (self.vm.test_modified(hold), self.vm.test_referenced(hold));
                self.vm.remove_all(hold);
            }
        }
    }

    fn pmap(&mut self) {
        let (address, range, prot) = (self.address(), self.range(), self.prot());
        let (of_space, at) = (self.below(2) == 0, self.below(4));
        let pmap = match self.pmaps.get(at) {
            Some(pmap) if !of_space => pmap,
            _ => self.spaces[at % self.spaces.len()].pmap(),
        };
        let entered = pmap.enter(address, &self.others.hold, prot);
        assert!(is_invalid(entered), "their page is mapped");
        if let Some(hold) = self.holds.last() {
            let _ = pmap.enter(address, hold, prot);
        }
        match self.dice.below(4) {
            0 => drop(pmap.remove(range)),
            1 => drop(pmap.protect(range, prot)),
            2 => pmap.activate(),
            _ => {
                let _ = (pmap.lookup(address), pmap.resident(), pmap.superpages());
            }
        }
    }
}

/// Makes `steps` calls in a new VM.
fn play(seed: u64, steps: usize, others: &Others) {
    let machine = Hosted::with_memory(2, FRAMES * P).expect("memory");
    machine.on_cpu(0, || {
        let vm = make_vm(&machine);
        let again = Vm::<S>::new(machine.clone());
        assert!(is_invalid(again), "a second VM has the machine's memory");
        let mut caller = Caller {
            dice: Dice(seed),
            vm: &vm,
            others,
            spaces: vec![Space::new(&vm).expect("a space")],
            pmaps: Vec::new(),
            objects: Vec::new(),
            holds: Vec::new(),
        };
        (0..steps).for_each(|_| caller.step());
        drop(caller);
        check_unused(&vm);
    });
}

#[test]
fn no_safe_call_breaks_memory_or_an_account() {
    print_the_unexpected();
    // They go on their CPU; after a failure they stay.
    let others = ManuallyDrop::new(Others::new());
    for seed in 1..=300 {
        play(seed * 0x9e37_79b9, 400, &others);
    }
    ManuallyDrop::into_inner(others).check();
}

/// A thread that is no CPU, or one of another machine, learns so from each call that needs one.
#[test]
fn a_thread_that_is_no_cpu_is_told() {
    print_the_unexpected();
    let others = ManuallyDrop::new(Others::new());
    let strange = || {
        let Others { vm, space, .. } = &*others;
        let why = "no CPU of";
        refused(|| Space::new(vm), why);
        refused(|| Pmap::new(vm), why);
        refused(|| vm.new_page(), why);
        refused(|| space.activate(), why);
        refused(|| space.map(P, Prot::READ), why);
        refused(|| vm.shared_memory(P as u64), why);
        refused(|| space.load(AT), "its CPU does not run");
    };
    strange();
    Hosted::with_memory(1, P)
        .expect("memory")
        .on_cpu(0, strange);
    ManuallyDrop::into_inner(others).check();
}

/// As on Linux, a mapping is paged in up to its first error; and a task may be interrupted.
#[test]
fn paging_in_ends() {
    const ALL_BUT_A_LITTLE: usize = 100 << 40;
    let machine = Hosted::with_memory(1, FRAMES * P).expect("memory");
    machine.on_cpu(0, || {
        let options = Options {
            interrupted: Some(Box::new(|| true)),
            ..Options::default()
        };
        let vm: TestVm = Vm::with_options(machine.clone(), options).expect("a VM");
        let space = Space::new(&vm).expect("a space");
        let nothing = Request::anonymous(ALL_BUT_A_LITTLE, Prot::NONE);
        space.map_as(&nothing.populated()).expect("room");
        assert_eq!(space.lock_all(Mappings::CURRENT, Bring::Now), Ok(()));
        let bytes = 1 << 20;
        let at = At::Fixed(HEAP_START);
        let some = Request::anonymous(bytes, Prot::READ_WRITE).at(at);
        space.map_as(&some.populated()).expect("room");
        assert_eq!(space.pmap().resident(), 0, "it is interrupted at once");
        let range = VaRange::sized(HEAP_START, bytes);
        assert_eq!(space.lock(range, Bring::Now), Err(Error::Interrupted));
    });
}
