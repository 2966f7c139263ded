//! Stacks as kernels produce them, and the names of this kernel.

use super::futex::futex;
use super::names::{Class, TABLE};
use super::*;
use crate::symbols::{Function, Named};

fn frames(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn row(kind: Kind, stack: &str) -> (String, String) {
    let Wanted { name, caller, .. } = wanted(kind, &frames(stack));
    (name, caller)
}

fn pair(name: &str, caller: &str) -> (String, String) {
    (name.to_owned(), caller.to_owned())
}

#[test]
fn locks_are_named_by_their_callers() {
    let cases = [
        (
            Kind::RwsemWrite,
            "rwsem_down_write_slowpath down_write_killable __vm_munmap",
            "mmap_lock",
            "__vm_munmap",
        ),
        (
            Kind::RwsemWrite,
            "rwsem_down_write_slowpath down_write_killable vm_mmap_pgoff",
            "mmap_lock",
            "vm_mmap_pgoff",
        ),
        (
            Kind::RwsemRead,
            "rwsem_down_read_slowpath down_read lock_mm_and_find_vma exc_page_fault",
            "mmap_lock",
            "lock_mm_and_find_vma",
        ),
        (
            Kind::RwsemWrite,
            "rwsem_down_write_slowpath down_write unlink_anon_vmas free_pgtables",
            "anon_vma lock",
            "unlink_anon_vmas",
        ),
        (
            Kind::Spinlock,
            "native_queued_spin_lock_slowpath _raw_spin_lock __pte_offset_map_lock \
             do_anonymous_page",
            "page-table lock",
            "do_anonymous_page",
        ),
        (
            Kind::Spinlock,
            "native_queued_spin_lock_slowpath _raw_spin_lock alloc_fd do_sys_openat2",
            "files->file_lock",
            "alloc_fd",
        ),
        (
            Kind::Spinlock,
            "native_queued_spin_lock_slowpath _raw_spin_lock posix_lock_inode fcntl_setlk",
            "flc_lock",
            "posix_lock_inode",
        ),
        (
            Kind::Mutex,
            "__mutex_lock anon_pipe_write vfs_write",
            "pipe->mutex",
            "anon_pipe_write",
        ),
        (
            Kind::RwlockWrite,
            "queued_write_lock_slowpath _raw_write_lock_irq release_task",
            "tasklist_lock",
            "release_task",
        ),
        (
            Kind::Spinlock,
            "native_queued_spin_lock_slowpath _raw_spin_lock_irqsave folio_lruvec_lock_irqsave \
             folio_batch_move_lru",
            "lruvec lock",
            "folio_batch_move_lru",
        ),
        (
            Kind::Spinlock,
            "native_queued_spin_lock_slowpath _raw_spin_lock some_driver",
            "unknown lock",
            "some_driver",
        ),
        (
            Kind::RwsemWrite,
            "rwsem_down_write_slowpath down_write_killable copy_process kernel_clone",
            "mmap_lock",
            "copy_process",
        ),
        (
            Kind::RwsemWrite,
            "rwsem_down_write_slowpath down_write copy_process kernel_clone",
            "vma lock",
            "copy_process",
        ),
        (Kind::RwsemRead, "", "unknown lock", "[kernel]"),
    ];
    for (kind, stack, name, caller) in cases {
        assert_eq!(row(kind, stack), pair(name, caller), "{stack}");
    }
}

#[test]
fn a_semaphores_own_spin_lock_is_not_the_semaphore() {
    let stack =
        "native_queued_spin_lock_slowpath _raw_spin_lock_irqsave rwsem_wake up_write __vm_munmap";
    assert_eq!(
        row(Kind::Spinlock, stack),
        pair("mmap_lock wait_lock", "__vm_munmap")
    );
}

#[test]
fn what_is_far_away_names_nothing() {
    let stack = "_raw_spin_lock a b c __handle_mm_fault";
    assert_eq!(row(Kind::Spinlock, stack), pair("unknown lock", "a"));
}

#[test]
fn spinning_is_known_by_its_functions() {
    let cases = [
        (
            "osq_lock rwsem_down_write_slowpath down_write_killable __vm_munmap",
            Some((Kind::RwsemWrite, "mmap_lock")),
        ),
        (
            "rwsem_spin_on_owner rwsem_down_write_slowpath down_write_killable vm_mmap_pgoff",
            Some((Kind::RwsemWrite, "mmap_lock")),
        ),
        (
            "rwsem_down_write_slowpath down_write_killable __do_sys_brk",
            Some((Kind::RwsemWrite, "mmap_lock")),
        ),
        (
            "handle_softirqs asm_sysvec_apic_timer_interrupt osq_lock rwsem_down_read_slowpath \
             down_read lock_mm_and_find_vma",
            Some((Kind::RwsemRead, "mmap_lock")),
        ),
        (
            "mutex_spin_on_owner __mutex_lock anon_pipe_read",
            Some((Kind::Mutex, "pipe->mutex")),
        ),
        (
            "__mutex_lock anon_pipe_read",
            Some((Kind::Mutex, "pipe->mutex")),
        ),
        (
            "native_queued_spin_lock_slowpath _raw_spin_lock alloc_fd",
            Some((Kind::Spinlock, "files->file_lock")),
        ),
        (
            "native_queued_spin_lock_slowpath queued_write_lock_slowpath _raw_write_lock_irq \
             release_task",
            Some((Kind::RwlockWrite, "tasklist_lock")),
        ),
        (
            "__schedule schedule rwsem_down_write_slowpath down_write __vm_munmap",
            None,
        ),
        ("_raw_spin_lock alloc_fd", None),
        ("", None),
    ];
    for (stack, expected) in cases {
        let found = spinning(&frames(stack)).map(|wanted| (wanted.kind, wanted.name));
        assert_eq!(
            found,
            expected.map(|(kind, name)| (kind, name.to_owned())),
            "{stack}"
        );
    }
}

fn named(kernel: &str, user: &[(&str, bool)]) -> Named {
    let function = |&(name, system): &(&str, bool)| Function {
        name: name.to_owned(),
        system,
        ..Function::default()
    };
    Named {
        process: "p".into(),
        thread: None,
        kernel: frames(kernel),
        user: user.iter().map(function).collect(),
    }
}

#[test]
fn a_wait_on_a_futex_is_of_the_function_that_wanted_the_lock() {
    let stack = named(
        "__schedule schedule futex_do_wait __futex_wait futex_wait do_futex",
        &[
            ("syscall", true),
            ("std::sys::sync::mutex::futex::Mutex::lock_contended", false),
            ("std::sync::poison::mutex::Mutex<T>::lock", false),
            ("app::work", false),
            ("app::main", false),
        ],
    );
    let expected = Wanted {
        name: "std::sync::Mutex".into(),
        kind: Kind::Futex,
        caller: "app::work".into(),
    };
    assert_eq!(futex(&stack), Some(expected));
}

#[test]
fn an_inlined_function_of_a_library_is_known_by_its_source() {
    let mut stack = named(
        "futex_wait",
        &[("syscall", true), ("lock", false), ("work", false)],
    );
    stack.user[1].source = "/rustc/5980/library/std/src/sync/poison/mutex.rs".into();
    let found = futex(&stack).map(|wanted| (wanted.name, wanted.caller));
    assert_eq!(found, Some(pair("std::sync::Mutex", "work")));
}

#[test]
fn a_futex_without_a_known_lock_is_a_futex() {
    let stack = named("__schedule futex_wait", &[("__GI___lll_lock_wait", true)]);
    let expected = Wanted {
        name: "futex".into(),
        kind: Kind::Futex,
        caller: "__GI___lll_lock_wait".into(),
    };
    assert_eq!(futex(&stack), Some(expected));
    assert_eq!(futex(&named("__schedule do_nanosleep", &[])), None);
}

/// A spin lock of a real-time kernel sleeps, and going to sleep acquires another one.
#[test]
fn the_schedulers_lock_is_not_what_a_thread_off_cpu_waits_for() {
    let stack = "__schedule schedule_rtlock rtlock_slowlock_locked rt_spin_lock folio_add_lru";
    let Off::Lock(Wanted { name, kind, .. }) = off(&named(stack, &[])) else {
        panic!("{stack}: no lock");
    };
    assert_eq!((&*name, kind), ("lru batch lock", Kind::Spinlock));
}

/// The running kernel's functions, without suffixes of variants.
fn kernel_functions() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let name = |line: &str| {
        let name = line.split_whitespace().nth(2)?;
        Some(crate::symbols::plain(name).to_owned())
    };
    text.lines().filter_map(name).collect()
}

#[test]
fn this_kernel_takes_its_locks_where_the_table_says() {
    let functions = kernel_functions();
    if functions.is_empty() {
        eprintln!("skipped: there is no /proc/kallsyms");
        return;
    }
    // One function of each group exists: a function on one kernel is inlined on another.
    let groups: [(&str, &[&str]); 6] = [
        ("munmap", &["__vm_munmap"]),
        ("mmap", &["vm_mmap_pgoff"]),
        ("brk", &["__do_sys_brk", "__x64_sys_brk"]),
        (
            "fault",
            &[
                "lock_mm_and_find_vma",
                "do_user_addr_fault",
                "exc_page_fault",
            ],
        ),
        ("mprotect", &["do_mprotect_pkey"]),
        ("fork", &["dup_mmap", "dup_mm"]),
    ];
    for (what, group) in groups {
        let there = group
            .iter()
            .any(|name| functions.iter().any(|one| one == name));
        let in_table = |name: &&str| {
            TABLE.iter().any(|&(class, pattern, lock)| {
                class == Class::Rwsem && lock == "mmap_lock" && matches(pattern, name)
            })
        };
        assert!(there, "{what}: this kernel has none of {group:?}");
        assert!(
            group.iter().any(in_table),
            "{what}: no row of the table is for {group:?}"
        );
    }
}
