//! Queries of a space.

use crate::store::TestStore;
use crate::world::{File, P, SLOT, System, TestSpace, active, pages, world};
use hosted::Hosted;
use machine::VaRange;
use std::sync::Arc;
use vm::object::{Object, ObjectId};
use vm::proc::{self, File as Named, Names};
use vm::{Advice, At, Best, Bring, Flags, HEAP_START, PagePlace, Prot, Request, Stats, Usage};

const AT: usize = 1 << 41;

fn vm() -> System {
    world(32).swap(1_000).vm()
}

fn file(vm: &System, pages: u64) -> File {
    let object = Object::file(vm, Arc::new(TestStore::default()), 0).expect("an object");
    object.set_size(pages * P as u64).expect("set_size");
    object
}

fn map(space: &TestSpace, request: Request<'_, Best<Hosted>>, at: usize) -> usize {
    space.map_as(&request.at(At::Fixed(at))).expect("map")
}

fn map_file(space: &TestSpace, of: &File, first: usize, count: usize, at: usize) {
    let offset = (first * P) as u64;
    let request = Request::object(of, offset, count * P, Prot::READ_WRITE).expect("a request");
    map(space, request, at);
}

fn anonymous(count: usize) -> Request<'static, Best<Hosted>> {
    Request::anonymous(count * P, Prot::READ_WRITE)
}

/// The counts agree with a walk over all entries.
#[track_caller]
fn audit(space: &TestSpace) -> Stats {
    let stats = space.stats();
    let (mut private, mut file, mut shared, mut swapped) = (0, 0, 0, 0);
    let mut usage = Usage::NONE;
    for region in space.regions().expect("regions") {
        let is_shared = region.object.is_some_and(|object| object.is_anonymous);
        for place in space.page_places(region.range).expect("places") {
            match place {
                PagePlace::Nowhere => {}
                PagePlace::Swapped(_) => swapped += 1,
                PagePlace::Present { of_object, .. } if !of_object => private += 1,
                PagePlace::Present { .. } if is_shared => shared += 1,
                PagePlace::Present { .. } => file += 1,
            }
        }
        let count = |counts: bool| {
            if counts {
                region.range.pages() as u64
            } else {
                0
            }
        };
        let flags = region.flags;
        let other = flags.has(Flags::SHARED) || flags.has(Flags::GROWS_DOWN);
        usage.mapped += count(true);
        usage.data += count(flags.prot().writes() && !other);
        usage.locked += count(flags.has(Flags::LOCKED));
        usage.charged += count(flags.has(Flags::CHARGED));
    }
    assert_eq!(
        [stats.private, stats.file, stats.shared, stats.swapped],
        [private, file, shared, swapped]
    );
    assert_eq!(stats.usage, usage);
    assert_eq!(stats.resident(), space.pmap().resident() as u64);
    let footprints = space.scan(0, usize::MAX).expect("footprints");
    let sum = |of: fn(&vm::Footprint) -> u64| footprints.iter().map(of).sum::<u64>();
    assert_eq!(sum(|f| f.resident), stats.resident());
    assert_eq!(sum(|f| f.anonymous), stats.private);
    assert_eq!(sum(|f| f.swapped), stats.swapped);
    assert_eq!(sum(|f| f.in_superpages), stats.in_superpages);
    let all =
        |f: &vm::Footprint| f.shared_clean + f.shared_dirty + f.private_clean + f.private_dirty;
    assert_eq!(sum(all), stats.resident());
    let regions: Vec<_> = footprints.iter().map(|f| f.region).collect();
    assert_eq!(regions, space.regions().expect("regions"));
    stats
}

#[test]
fn parts_of_a_file_in_its_order_are_one_region() {
    let vm = vm();
    let space = active(&vm);
    let (one, other) = (file(&vm, 20), file(&vm, 20));
    map_file(&space, &one, 3, 4, AT);
    map_file(&space, &one, 7, 2, AT + 4 * P);
    map_file(&space, &one, 10, 1, AT + 6 * P);
    map_file(&space, &other, 11, 1, AT + 7 * P);
    let seen: Vec<_> = space
        .regions()
        .expect("regions")
        .iter()
        .map(|region| {
            let object = region.object.expect("an object");
            (region.range.pages(), object.id, object.offset / P as u64)
        })
        .collect();
    let expected = [(6, one.id(), 3), (1, one.id(), 10), (1, other.id(), 11)];
    assert_eq!(seen, expected);
    space.unmap(pages(AT + P, 1)).expect("unmap");
    let second = space.regions().expect("regions")[1]
        .object
        .expect("an object");
    assert_eq!(second.offset, 5 * P as u64);
    // Over slots too.
    let far = AT + 16 * SLOT;
    map_file(&space, &one, 0, 20, far - 10 * P);
    let whole = space
        .regions()
        .expect("regions")
        .into_iter()
        .filter(|r| r.range.end > far);
    assert_eq!(
        whole.map(|r| r.range).collect::<Vec<_>>(),
        [pages(far - 10 * P, 20)]
    );
}

#[test]
fn counts_are_exact_whatever_happens() {
    let vm = vm();
    let space = active(&vm);
    let object = file(&vm, 20);
    // All three kinds in one slot, and one across slots.
    map(&space, anonymous(10), AT);
    map_file(&space, &object, 0, 20, AT + 20 * P);
    map(&space, anonymous(10).shared(), AT + 50 * P);
    map(&space, anonymous(20), AT + SLOT - 10 * P);
    assert_eq!(audit(&space).resident(), 0);
    for page in 0..10 {
        space.store(AT + page * P, 1).expect("store");
        space.load(AT + (20 + page) * P).expect("load");
        space.store(AT + (50 + page) * P, 1).expect("store");
        space.store(AT + SLOT - 5 * P + page * P, 1).expect("store");
    }
    let stats = audit(&space);
    // The file was read in clusters of 16, whose pages are mapped as far as one block of 16 has
    // them.
    assert_eq!([stats.private, stats.file, stats.shared], [20, 12, 10]);
    // Copy-on-write makes a private page of a file's.
    space.store(AT + 20 * P, 5).expect("store");
    let stats = audit(&space);
    assert_eq!([stats.private, stats.file], [21, 11]);
    let child = space.fork().expect("fork");
    let (before, inherited) = (audit(&space), audit(&child));
    assert_eq!(
        [inherited.private, inherited.file, inherited.shared],
        [21, 0, 0]
    );
    child.activate();
    child.store(AT, 2).expect("store");
    child.store(AT + 20 * P, 6).expect("store");
    child.load(AT + 51 * P).expect("load");
    let stats = audit(&child);
    assert_eq!([stats.private, stats.shared], [21, 10]);
    assert_eq!(audit(&space), before);
    space.activate();
    space
        .protect(pages(AT + 5 * P, 5), Prot::READ)
        .expect("protect");
    audit(&space);
    space.advise(pages(AT, 8), Advice::PageOut).expect("advise");
    let stats = audit(&space);
    assert_eq!(stats.swapped, 8);
    assert_eq!(audit(&child).swapped, 7, "one is its own");
    object.set_size(3 * P as u64).expect("set_size");
    let stats = audit(&space);
    assert_eq!(stats.file, 2);
    audit(&child);
    space.lock(pages(AT, 10), Bring::Now).expect("lock");
    let stats = audit(&space);
    assert_eq!([stats.swapped, stats.usage.locked], [0, 10]);
    space
        .advise(pages(AT + SLOT - 10 * P, 20), Advice::DontNeed)
        .expect("advise");
    assert_eq!(audit(&space).private, 11);
    space.unmap(pages(AT, 600)).expect("unmap");
    let stats = audit(&space);
    assert_eq!(stats, Stats::default());
}

#[test]
fn a_scan_goes_on_where_the_last_one_ended() {
    let vm = vm();
    let (space, _object) = one_of_each(&vm);
    // Over slots.
    map(&space, anonymous(1024), AT + 3 * SLOT - 10 * P);
    for at in [AT + 3 * SLOT - P, AT + 3 * SLOT, AT + 4 * SLOT] {
        space.store(at, 1).expect("store");
    }
    let whole = space.scan(0, usize::MAX).expect("memory");
    assert_eq!(whole.len(), space.regions().expect("regions").len());
    assert_eq!(whole.last().map(|last| last.resident), Some(3));
    for limit in 1..=whole.len() {
        let (mut from, mut pieces) = (0, Vec::new());
        loop {
            let piece = space.scan(from, limit).expect("memory");
            assert!(piece.len() <= limit);
            let Some(last) = piece.last() else { break };
            from = last.region.range.end;
            pieces.extend(piece);
        }
        assert_eq!(pieces, whole, "{limit} at a time");
    }
    // From within a region.
    let rest = space.scan(AT + 4 * SLOT - P, 1).expect("memory");
    let end = AT + 3 * SLOT + 1014 * P;
    let range = VaRange {
        start: AT + 4 * SLOT - P,
        end,
    };
    assert_eq!((rest[0].region.range, rest[0].resident), (range, 1));
    assert_eq!(space.scan(end, 1), Ok(Vec::new()));
    assert_eq!(space.scan(usize::MAX, 1), Ok(Vec::new()));
}

#[test]
fn superpages_are_told() {
    let vm = vm();
    let space = active(&vm);
    let request = anonymous(SLOT / P).with(Flags::HUGE).populated();
    map(&space, request, AT);
    space.store(AT + 9 * P, 1).expect("store");
    let stats = audit(&space);
    assert_eq!([stats.private, stats.in_superpages], [512, 512]);
    let print = space.scan(0, usize::MAX).expect("footprints")[0];
    assert_eq!([print.private_dirty, print.referenced], [512, 512]);
    let places = space.page_places(pages(AT + 100 * P, 2)).expect("places");
    let frame = |place: PagePlace| match place {
        PagePlace::Present { frame, .. } => Some(frame),
        _ => None,
    };
    assert_eq!(frame(places[0]), space.pmap().lookup(AT + 100 * P));
    assert_eq!(frame(places[1]), space.pmap().lookup(AT + 101 * P));
    space.unmap(pages(AT + 7 * P, 1)).expect("unmap");
    let stats = audit(&space);
    assert_eq!([stats.private, stats.in_superpages], [511, 0]);
}

#[test]
fn pages_are_told_as_pagemap_does() {
    let vm = vm();
    let space = active(&vm);
    let object = file(&vm, 4);
    map(&space, anonymous(4), AT);
    map_file(&space, &object, 0, 4, AT + 4 * P);
    for page in [0, 1] {
        space.store(AT + page * P, 1).expect("store");
    }
    space.load(AT + 4 * P).expect("load");
    space.advise(pages(AT, 1), Advice::PageOut).expect("advise");
    let child = space.fork().expect("fork");
    let seen = |space: &TestSpace| -> Vec<u64> {
        let places = space.page_places(pages(AT, 9)).expect("places");
        places.into_iter().map(proc::pagemap_entry).collect()
    };
    let frame = |page| u64::from(space.pmap().lookup(AT + page * P).expect("a page").0);
    let (present, swapped, of_object, exclusive) = (1 << 63, 1 << 62, 1 << 61, 1 << 56);
    let words = seen(&space);
    assert_eq!(words[0] & !(0xffff << 5), swapped);
    assert_eq!(words[1], present | frame(1));
    assert_eq!(words[2..4], [0, 0]);
    // All four, since they lie side by side.
    let of_file = [4, 5, 6, 7].map(|page| present | of_object | exclusive | frame(page));
    assert_eq!(words[4..8], of_file);
    assert_eq!(words[8], 0);
    assert_eq!(seen(&child)[..4], words[..4]);
    assert_eq!(
        seen(&child)[4..8],
        [0; 4],
        "a child finds files' pages by itself"
    );
    drop(child);
    assert_eq!(seen(&space)[1], present | exclusive | frame(1));
    assert!(
        space
            .page_places(pages(AT + (1 << 40), 3))
            .expect("places")
            .iter()
            .all(|place| *place == PagePlace::Nowhere)
    );
}

/// A space with one of each, its file, and a child that shares a page.
fn one_of_each(vm: &System) -> (TestSpace, File) {
    let space = active(vm);
    let object = file(vm, 8);
    space.set_break(HEAP_START + 2 * P).expect("brk");
    let code = Request::object(&object, P as u64, 2 * P, Prot::READ_EXECUTE).expect("a request");
    map(&space, code, AT);
    map(&space, anonymous(3).with(Flags::LOCKED), AT + 2 * P);
    map(&space, Request::anonymous(P, Prot::NONE), AT + 5 * P);
    map(&space, anonymous(2).shared(), AT + 6 * P);
    let file = Request::object(&object, 0, P, Prot::READ).expect("a request");
    map(&space, file.shared().with(Flags::READ_ONLY), AT + 8 * P);
    map(&space, anonymous(2).with(Flags::GROWS_DOWN), AT + SLOT);
    space.load(AT).expect("load");
    space.store(AT + SLOT, 1).expect("store");
    (space, object)
}

fn names<'a>(space: &TestSpace, file: &'a dyn Fn(ObjectId) -> Option<Named<'a>>) -> Names<'a> {
    Names {
        heap: space.heap(),
        stack: AT + SLOT,
        file,
    }
}

#[test]
fn maps_is_as_linux_writes_it() {
    let vm = vm();
    let (space, object) = one_of_each(&vm);
    let id = object.id();
    let library = move |of| {
        (of == id).then_some(Named {
            device: (8, 0x12),
            inode: 4711,
            path: "/lib/a\nb.so",
        })
    };
    let mut text = String::new();
    let names = names(&space, &library);
    proc::write_maps(&space.regions().expect("regions"), &names, &mut text).expect("text");
    let expected = "\
100000000-100002000 rw-p 00000000 00:00 0                                [heap]
20000000000-20000002000 r-xp 00001000 08:12 4711                         /lib/a\\012b.so
20000002000-20000005000 rw-p 00000000 00:00 0 
20000005000-20000006000 ---p 00000000 00:00 0 
20000006000-20000008000 rw-s 00000000 00:00 0                            /dev/zero (deleted)
20000008000-20000009000 r--s 00000000 08:12 4711                         /lib/a\\012b.so
20000200000-20000202000 rw-p 00000000 00:00 0                            [stack]
";
    assert_eq!(text, expected);
}

#[test]
fn smaps_is_as_linux_writes_it() {
    let vm = vm();
    let (space, _object) = one_of_each(&vm);
    for page in 2..5 {
        space.store(AT + page * P, 1).expect("store");
    }
    let child = space.fork().expect("fork");
    child.unmap(pages(AT + 2 * P, 2)).expect("unmap");
    space
        .advise(pages(AT + SLOT, 1), Advice::PageOut)
        .expect("advise");
    let mut text = String::new();
    let nobody = |_| None;
    let prints = space.scan(0, usize::MAX).expect("footprints");
    proc::write_smaps(&prints, &names(&space, &nobody), &mut text).expect("text");
    let entry = |start: &str| {
        let from = text.find(start).expect("the region");
        let end = text[from..].find("VmFlags").expect("its end") + from;
        let end = text[end..].find('\n').expect("a line") + end + 1;
        text[from..end].to_string()
    };
    // Three pages, one of them also the child's: 2 + 1/2 pages are 10 KiB.
    assert_eq!(
        entry("20000002000-"),
        "\
20000002000-20000005000 rw-p 00000000 00:00 0 
Size:                 12 kB
KernelPageSize:        4 kB
MMUPageSize:           4 kB
Rss:                  12 kB
Pss:                  10 kB
Shared_Clean:          0 kB
Shared_Dirty:          4 kB
Private_Clean:         0 kB
Private_Dirty:         8 kB
Referenced:           12 kB
Anonymous:            12 kB
LazyFree:              0 kB
AnonHugePages:         0 kB
Swap:                  0 kB
Locked:               10 kB
VmFlags: rd wr mr mw me lo ac 
"
    );
    let flags = |start: &str| entry(start).lines().last().expect("flags").to_string();
    assert_eq!(flags("20000000000-"), "VmFlags: rd ex mr mw me ");
    assert_eq!(flags("20000005000-"), "VmFlags: mr mw me ");
    assert_eq!(flags("20000006000-"), "VmFlags: rd wr sh mr mw me ms ");
    assert_eq!(flags("20000008000-"), "VmFlags: rd mr me ms ");
    let stack = entry("20000200000-");
    assert!(stack.contains("Swap:                  4 kB\n"), "{stack}");
    assert!(stack.contains("Rss:                   0 kB\n"), "{stack}");
    assert!(
        stack.ends_with("VmFlags: rd wr mr mw me gd ac \n"),
        "{stack}"
    );
    let code = entry("20000000000-");
    // Its second page is mapped, but no task has read it.
    assert!(code.contains("Private_Clean:         8 kB\n"), "{code}");
    assert!(code.contains("Referenced:            4 kB\n"), "{code}");
    assert!(code.contains("Anonymous:             0 kB\n"), "{code}");
    // The page that the child has, too, stays as it is.
    let some = pages(AT + 2 * P, 3);
    space.unlock(some).expect("unlock");
    space.advise(some, Advice::Free).expect("advise");
    let prints = space.scan(0, usize::MAX).expect("footprints");
    let mut text = String::new();
    proc::write_smaps(&prints, &names(&space, &nobody), &mut text).expect("text");
    assert!(text.contains("LazyFree:              8 kB\n"), "{text}");
}

#[test]
fn a_page_is_found_by_any_address_in_it() {
    let vm = vm();
    let space = active(&vm);
    let of = file(&vm, 8);
    map_file(&space, &of, 2, 3, AT);
    let found = space.region_at(AT + P + 5).expect("something is mapped");
    let object = found.object.expect("an object");
    assert_eq!(found.range, pages(AT + P, 1));
    assert_eq!((object.id, object.offset), (of.id(), 3 * P as u64));
    assert_eq!(object.id.number(), of.id().number());
    assert_ne!(object.id.number(), file(&vm, 1).id().number());
    map(&space, anonymous(1), AT + 8 * P);
    let anonymous = space
        .region_at(AT + 9 * P - 1)
        .expect("something is mapped");
    assert_eq!(anonymous.object, None);
    for nowhere in [0, AT - 1, AT + 3 * P, AT + 9 * P, usize::MAX] {
        assert_eq!(space.region_at(nowhere), None, "{nowhere:#x}");
    }
}
