//! Names of kernel locks. A tracepoint knows a lock's address only; the waiter's stack tells the
//! name, by the known function nearest to the lock.

use super::machinery::is_machinery;
use super::matches;
use profile::Kind;

/// Kinds of locks that the same functions acquire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    Spin,
    Rwlock,
    Mutex,
    Rwsem,
    Percpu,
}

use Class::{Mutex, Percpu, Rwlock, Rwsem, Spin};

/// A lock's class, a function that acquires it (a star matches anything), its name. Where a
/// function acquires several locks of the class, the function of locking that it calls stands
/// before it. `seen` marks rows that a recording showed, by kernel; the others name functions of
/// that kernel whose waits no recording has shown yet.
pub(super) const TABLE: &[(Class, &str, &str)] = &[
    // The address space.
    (Rwsem, "__vm_munmap", "mmap_lock"),   // seen: 6.18, munmap
    (Rwsem, "vm_mmap_pgoff", "mmap_lock"), // seen: 6.18, mmap
    (Rwsem, "__do_sys_brk", "mmap_lock"),  // seen: 6.18, brk
    (Rwsem, "__x64_sys_brk", "mmap_lock"), // 6.18: where the above is inlined
    (Rwsem, "lock_mm_and_find_vma", "mmap_lock"), // seen: 6.18, a fault
    (Rwsem, "do_mprotect_pkey", "mmap_lock"), // 6.18: mprotect
    (Rwsem, "madvise_lock", "mmap_lock"),  // 6.18: madvise
    (Rwsem, "do_madvise", "mmap_lock"),    // 6.12: madvise
    (Rwsem, "madvise_*", "mmap_lock"),     // 6.12: madvise, taken again
    (Rwsem, "down_write copy_process", "vma lock"), // seen: 6.12, fork
    (Rwsem, "dup_mmap", "mmap_lock"),      // seen: 6.18, fork
    (Rwsem, "copy_process", "mmap_lock"),  // seen: 6.12, fork, the above inlined
    (Rwsem, "exit_mmap", "mmap_lock"),     // 6.18: exit
    (Rwsem, "exit_mm", "mmap_lock"),       // 6.12: exit
    (Rwsem, "do_exit", "mmap_lock"),       // 6.18: exit, the above inlined
    (Rwsem, "__do_sys_mremap", "mmap_lock"), // 6.18: mremap
    (Rwsem, "do_mremap", "mmap_lock"),     // 6.18: mremap
    (Rwsem, "__x64_sys_mremap", "mmap_lock"), // 6.12: mremap
    (Rwsem, "do_mlock", "mmap_lock"),      // 6.18: mlock
    (Rwsem, "do_mincore", "mmap_lock"),    // 6.18: mincore
    (Rwsem, "__x64_sys_mincore", "mmap_lock"), // 6.18: mincore
    (Rwsem, "do_shmat", "mmap_lock"),      // 6.18: shmat
    (Rwsem, "ksys_shmdt", "mmap_lock"),    // 6.18: shmdt
    (Rwsem, "vm_brk_flags", "mmap_lock"),  // 6.18: exec
    (Rwsem, "setup_arg_pages", "mmap_lock"), // 6.18: exec
    (Rwsem, "begin_new_exec", "mmap_lock"), // 6.18: exec
    (Rwsem, "access_remote_vm", "mmap_lock"), // 6.18: /proc, ptrace
    (Rwsem, "__access_remote_vm", "mmap_lock"), // 6.18: /proc, ptrace
    (Rwsem, "m_start", "mmap_lock"),       // 6.18: /proc/PID/maps
    (Rwsem, "get_user_pages_unlocked", "mmap_lock"), // 6.18: pinned pages
    (Rwsem, "__gup_longterm_locked", "mmap_lock"), // 6.18: pinned pages
    (Rwsem, "khugepaged*", "mmap_lock"),   // 6.18: huge pages
    (Rwsem, "collapse_huge_page", "mmap_lock"), // 6.18: huge pages
    (Rwsem, "task_numa_work", "mmap_lock"), // 6.18: NUMA balancing
    (Rwsem, "do_user_addr_fault", "mmap_lock"), // 6.1: a fault
    (Rwsem, "exc_page_fault", "mmap_lock"), // 6.18: a fault
    // Mappings. From 6.4 to 6.14 their locks are semaphores, which faults acquire for reading.
    (Rwsem, "__split_vma", "vma lock"), // seen: 6.12, munmap, mprotect
    (Rwsem, "vma_expand", "vma lock"),  // seen: 6.12, mmap
    (Rwsem, "vma_modify*", "vma lock"), // 6.12: mprotect, madvise
    (Rwsem, "mprotect_fixup", "vma lock"), // 6.12: mprotect
    (Rwsem, "vms_gather_munmap_vmas", "vma lock"), // 6.12: munmap
    // Reverse mappings.
    (Rwsem, "__vma_adjust", "i_mmap lock"), // 6.1: munmap, mprotect
    (Rwsem, "unlink_anon_vmas", "anon_vma lock"), // 6.18: munmap, exit
    (Rwsem, "anon_vma_clone", "anon_vma lock"), // 6.18: fork
    (Rwsem, "anon_vma_fork", "anon_vma lock"), // 6.18: fork
    (Rwsem, "__anon_vma_prepare", "anon_vma lock"), // 6.18: first fault
    (Rwsem, "folio_lock_anon_vma_read", "anon_vma lock"), // 6.18: reclaim
    (Rwsem, "rmap_walk_anon*", "anon_vma lock"), // 6.18: reclaim
    (Rwsem, "unlink_file_vma*", "i_mmap lock"), // 6.18: munmap, exit
    (Rwsem, "vma_link_file", "i_mmap lock"), // 6.18: mmap
    (Rwsem, "vma_prepare", "i_mmap lock"),  // seen: 6.18, concurrent mmaps
    (Rwsem, "vma_link", "i_mmap lock"),     // 6.18: mmap
    (Rwsem, "__mmap_region", "i_mmap lock"), // seen: 6.18, mmap of a file
    (Rwsem, "rmap_walk_file*", "i_mmap lock"), // where not inlined: reclaim
    (Rwsem, "unmap_mapping_*", "i_mmap lock"), // 6.18: truncate
    (Rwsem, "free_pgtables", "i_mmap lock"), // 6.18: munmap of a file
    // Frames.
    (Spin, "rmqueue*", "zone lock"),               // 6.12: allocation
    (Spin, "__rmqueue*", "zone lock"),             // 6.18: allocation
    (Spin, "get_page_from_freelist", "zone lock"), // 6.18: allocation
    (Spin, "free_pcppages_bulk", "zone lock"),     // 6.18: freeing
    (Spin, "free_one_page", "zone lock"),          // 6.18: freeing
    (Spin, "free_frozen_page_commit", "zone lock"), // 6.18: freeing
    (Spin, "__free_frozen_pages", "zone lock"),    // 6.18: freeing
    (Spin, "folio_lruvec_lock*", "lruvec lock"),   // 6.18: ageing
    (Spin, "folio_lruvec_relock*", "lruvec lock"), // where not inlined: ageing
    (Spin, "folio_add_lru", "lru batch lock"),     // seen: 6.1-rt, first fault
    (Spin, "lru_add_drain*", "lru batch lock"),    // seen: 6.1-rt, munmap
    (Spin, "folio_batch_move_lru", "lruvec lock"), // seen: 6.18, first fault
    (Spin, "folios_put_refs", "lruvec lock"),      // 6.18: freeing
    (Spin, "__page_cache_release", "lruvec lock"), // seen: 6.18, freeing
    (Spin, "shrink_*_list", "lruvec lock"),        // 6.18: reclaim
    (Spin, "get_partial_node*", "slab node lock"), // seen: 6.18, allocation
    (Spin, "___slab_alloc", "slab node lock"),     // 6.18: allocation
    (Spin, "__slab_free", "slab node lock"),       // seen: 6.18, freeing
    (Spin, "__put_partials", "slab node lock"),    // seen: 6.18, freeing
    (Spin, "put_cpu_partial", "slab node lock"),   // 6.18: freeing
    (Spin, "__pcs_replace_*", "slab node lock"),   // 6.18: sheaves
    (Spin, "barn_*", "slab barn lock"),            // seen: 6.18, munmap
    (Spin, "percpu_counter_add_batch", "percpu counter lock"), // seen: 6.18, a fault
    (Spin, "pcpu_alloc_noprof", "pcpu_lock"),      // 6.18: allocation
    (Spin, "free_percpu", "pcpu_lock"),            // seen: 6.18, exec
    (Mutex, "pcpu_alloc_noprof", "pcpu_alloc_mutex"), // seen: 6.18, exec
    (Spin, "alloc_vmap_area", "vmap lock"),        // 6.18: kernel stacks
    (Spin, "free_vmap_area_noflush", "vmap lock"), // 6.18: kernel stacks
    (Spin, "remove_vm_area", "vmap lock"),         // 6.18: kernel stacks
    (Spin, "find_vmap_area", "vmap lock"),         // 6.18: kernel stacks
    (Spin, "purge_vmap_node", "vmap lock"),        // 6.18: kernel stacks
    // Page tables.
    (Spin, "__pte_offset_map_lock", "page-table lock"), // 6.18: faults, unmapping
    (Spin, "pte_offset_map_rw_nolock", "page-table lock"), // 6.18: faults
    (Spin, "__pte_alloc", "page-table lock"),           // 6.18: a fault
    (Spin, "__pmd_alloc", "page-table lock"),           // 6.18: a fault
    (Spin, "do_anonymous_page", "page-table lock"),     // seen: 6.18, a fault
    (Spin, "do_wp_page", "page-table lock"),            // seen: 6.18, a fault, copying
    (Spin, "wp_page_*", "page-table lock"),             // 6.12: a fault, copying
    (Spin, "finish_fault", "page-table lock"),          // 6.18: a fault in a file
    (Spin, "filemap_map_pages", "page-table lock"),     // 6.18: a fault in a file
    (Spin, "do_swap_page", "page-table lock"),          // 6.18: a fault, from swap
    (Spin, "do_huge_pmd_*", "page-table lock"),         // 6.18: a fault, huge
    (Spin, "__do_huge_pmd_*", "page-table lock"),       // 6.12: a fault, huge
    (Spin, "__handle_mm_fault", "page-table lock"),     // seen: 6.18, a fault
    (Spin, "handle_mm_fault", "page-table lock"),       // 6.18: a fault
    (Spin, "zap_*", "page-table lock"),                 // 6.12: unmapping
    (Spin, "unmap_page_range", "page-table lock"),      // 6.18: unmapping, inlined
    (Spin, "copy_p*_range", "page-table lock"),         // 6.12: fork
    (Spin, "copy_page_range", "page-table lock"),       // 6.18: fork, inlined
    (Spin, "change_p*", "page-table lock"),             // 6.18: mprotect
    (Spin, "move_p*", "page-table lock"),               // 6.18: mremap
    // Files.
    (Spin, "alloc_fd", "files->file_lock"), // seen: 6.18, open
    (Spin, "fd_install", "files->file_lock"), // 6.18: open
    (Spin, "file_close_fd", "files->file_lock"), // seen: 6.18, close
    (Spin, "file_close_fd_locked", "files->file_lock"), // 6.18: close
    (Spin, "close_fd*", "files->file_lock"), // 6.1: close
    (Spin, "put_unused_fd", "files->file_lock"), // 6.18: close
    (Spin, "dup_fd", "files->file_lock"),   // seen: 6.18, fork
    (Spin, "do_dup2", "files->file_lock"),  // 6.18: dup2
    (Spin, "posix_lock_inode", "flc_lock"), // seen: 6.18, fcntl
    (Spin, "fcntl_setlk", "files->file_lock"), // seen: 6.18, fcntl, against close
    (Spin, "flock_lock_inode", "flc_lock"), // 6.18: flock
    (Spin, "locks_remove_*", "flc_lock"),   // 6.18: close
    (Spin, "__break_lease", "flc_lock"),    // 6.18: open
    (Percpu, "posix_lock_inode", "file_rwsem"), // 6.18: fcntl
    (Percpu, "flock_lock_inode", "file_rwsem"), // 6.18: flock
    (Percpu, "locks_remove_*", "file_rwsem"), // 6.18: close
    (Spin, "dput", "dentry lock"),          // 6.18: close, unlink
    (Spin, "lockref_*", "dentry lock"),     // 6.18: path lookup
    (Spin, "d_alloc*", "dentry lock"),      // 6.18: create
    (Spin, "d_delete", "dentry lock"),      // 6.18: unlink
    (Spin, "__dentry_kill", "dentry lock"), // 6.18: unlink
    (Spin, "kernfs_path_from_node", "kernfs_rename_lock"), // seen: 6.1-rt, tracing
    (Rwlock, "kernfs_path_from_node", "kernfs_rename_lock"), // 6.12: tracing
    (Spin, "inode_sb_list_add", "inode list lock"), // 6.18: create
    (Spin, "evict", "inode lock"),          // 6.18: unlink
    (Spin, "iput*", "inode lock"),          // 6.18: unlink
    (Rwsem, "path_openat", "inode rwsem"),  // 6.18: create in a directory
    (Rwsem, "open_last_lookups", "inode rwsem"), // 6.12: create in a directory
    (Rwsem, "lookup_slow", "inode rwsem"),  // 6.12: lookup in a directory
    (Rwsem, "filename_create", "inode rwsem"), // 6.18: mkdir
    (Rwsem, "do_unlinkat", "inode rwsem"),  // 6.18: unlink
    (Rwsem, "do_rmdir", "inode rwsem"),     // 6.18: rmdir
    (Rwsem, "lock_rename*", "inode rwsem"), // 6.18: rename
    (Rwsem, "iterate_dir", "inode rwsem"),  // 6.18: readdir
    (Rwsem, "do_truncate", "inode rwsem"),  // 6.18: truncate
    (Rwsem, "*_file_write_iter", "inode rwsem"), // 6.18: write
    (Rwsem, "*_file_read_iter", "inode rwsem"), // 6.18: read
    (Rwsem, "*_buffered_write_iter", "inode rwsem"), // 6.18: write
    (Rwsem, "lock_two_nondirectories", "inode rwsem"), // 6.18: rename
    (Mutex, "fdget_pos", "file position lock"), // 6.12: read, write
    (Mutex, "ksys_read", "file position lock"), // 6.18: read, the above inlined
    (Mutex, "ksys_write", "file position lock"), // 6.18: write
    (Mutex, "ksys_lseek", "file position lock"), // 6.18: lseek
    (Mutex, "anon_pipe_read", "pipe->mutex"), // seen: 6.18, pipe
    (Mutex, "anon_pipe_write", "pipe->mutex"), // seen: 6.18, pipe
    (Mutex, "fifo_pipe_*", "pipe->mutex"),  // 6.18: fifo
    (Mutex, "pipe_*", "pipe->mutex"),       // 6.12: pipe
    (Spin, "anon_pipe_*", "pipe wait queue"), // 6.18: pipe
    (Spin, "eventfd_*", "eventfd wait queue"), // 6.18: eventfd
    (Mutex, "ep_*", "ep->mtx"),             // 6.18: epoll
    (Mutex, "do_epoll_*", "ep->mtx"),       // 6.18: epoll
    (Rwlock, "ep_*", "ep->lock"),           // 6.18: epoll
    (Spin, "ep_*", "ep->lock"),             // 6.18: epoll
    // Sockets.
    (Spin, "unix_*", "unix socket lock"), // 6.18: unix sockets
    (Spin, "skb_queue_tail", "socket queue lock"), // 6.18: sockets
    (Spin, "__skb_*", "socket queue lock"), // 6.18: sockets
    (Mutex, "unix_*", "unix socket iolock"), // 6.18: unix sockets
    (Mutex, "__unix_*", "unix socket iolock"), // 6.18: unix sockets
    (Spin, "lock_sock_nested", "socket lock"), // 6.18: tcp, udp
    (Spin, "release_sock", "socket lock"), // 6.18: tcp, udp
    (Spin, "tcp_v*_rcv", "socket lock"),  // 6.18: tcp
    (Spin, "__wake_up*", "wait queue lock"), // 6.18: sockets, pipes
    (Spin, "prepare_to_wait*", "wait queue lock"), // 6.18: sockets, pipes
    (Spin, "finish_wait", "wait queue lock"), // 6.18: sockets, pipes
    (Spin, "add_wait_queue*", "wait queue lock"), // seen: 6.18, poll
    (Spin, "remove_wait_queue", "wait queue lock"), // 6.18: poll
    // Tasks.
    (Spin, "futex_*", "futex hash bucket"),   // 6.18: futex
    (Spin, "__futex_*", "futex hash bucket"), // 6.18: futex
    (Spin, "raw_spin_rq_lock*", "runqueue lock"), // 6.18: scheduler
    (Spin, "_raw_spin_rq_lock*", "runqueue lock"), // 6.18: scheduler
    (Spin, "__schedule", "runqueue lock"),    // seen: 6.18, scheduler
    (Spin, "sched_*", "runqueue lock"),       // seen: 6.18, scheduler
    (Spin, "ttwu_*", "runqueue lock"),        // 6.12: scheduler
    (Spin, "try_to_wake_up", "task->pi_lock"), // seen: 6.18, scheduler
    (Spin, "wake_up_new_task", "task->pi_lock"), // seen: 6.18, fork
    (Spin, "lock_timer_base", "timer base lock"), // 6.18: timers
    (Spin, "hrtimer_*", "hrtimer base lock"), // 6.18: timers
    (Spin, "__lock_task_sighand", "sighand->siglock"), // 6.18: signals
    (Spin, "send_signal_locked", "sighand->siglock"), // 6.18: signals
    (Spin, "do_notify_parent", "sighand->siglock"), // 6.18: exit
    (Rwlock, "copy_process", "tasklist_lock"), // seen: 6.18, fork
    (Rwlock, "do_exit", "tasklist_lock"),     // 6.18: exit
    (Rwlock, "exit_notify", "tasklist_lock"), // 6.12: exit
    (Rwlock, "release_task", "tasklist_lock"), // seen: 6.18, exit
    (Rwlock, "do_wait*", "tasklist_lock"),    // 6.18: wait
    (Rwlock, "__do_wait", "tasklist_lock"),   // seen: 6.18, wait
    (Rwlock, "wait_consider_task", "tasklist_lock"), // 6.18: wait
    (Rwlock, "kill_something_info", "tasklist_lock"), // 6.18: kill
    (Spin, "copy_process", "sighand->siglock"), // seen: 6.18, fork
    (Spin, "alloc_pid", "pidmap_lock"),       // seen: 6.18, fork
    (Spin, "free_pid*", "pidmap_lock"),       // seen: 6.18, exit
    (Spin, "cgroup_move_task", "runqueue lock"), // 6.18: scheduler
    (Spin, "css_set_move_task", "css_set_lock"), // 6.18: fork, exit
    (Spin, "cgroup_*", "css_set_lock"),       // 6.18: fork, exit
    (Percpu, "cgroup_*", "cgroup_threadgroup_rwsem"), // 6.18: fork
    (Percpu, "copy_process", "cgroup_threadgroup_rwsem"), // 6.18: fork
    (Percpu, "do_exit", "cgroup_threadgroup_rwsem"), // 6.18: exit
    (Percpu, "cpus_read_lock", "cpu_hotplug_lock"), // 6.18
    // RCU.
    (Spin, "rcu_*", "rcu node lock"), // 6.18: grace periods
    (Spin, "note_gp_changes", "rcu node lock"), // 6.18: grace periods
    (Spin, "__note_gp_changes", "rcu node lock"), // 6.18: grace periods
    (Spin, "__call_rcu_common", "rcu callbacks lock"), // 6.18
];

/// Functions of sleeping locks: a spin lock acquired in them is part of the lock.
const SLEEPING: &[(&str, Class)] = &[
    ("rwsem_*", Rwsem),
    ("down_read*", Rwsem),
    ("down_write*", Rwsem),
    ("up_read", Rwsem),
    ("up_write", Rwsem),
    ("downgrade_write", Rwsem),
    ("mutex_*", Mutex),
    ("__mutex_*", Mutex),
];

/// The number of functions outside of locking that are considered. Functions further away acquire
/// other locks, and no name is better than a wrong one.
const NEAR: usize = 3;

/// The name of a lock, by the waiter's kernel frames from the leaf.
pub(super) fn name(kind: Kind, frames: &[String]) -> Option<String> {
    let class = class(kind)?;
    if class == Spin
        && let Some((at, outer)) = frames.iter().enumerate().find_map(sleeping)
    {
        let inner = at.min(frames.len());
        return nearest(Spin, &frames[..inner])
            .map(str::to_owned)
            .or_else(|| {
                let outer = nearest(outer, &frames[inner..])?;
                Some(format!("{outer} wait_lock"))
            });
    }
    nearest(class, frames).map(str::to_owned)
}

/// The index of a frame and its class, if it belongs to a sleeping lock.
fn sleeping((at, frame): (usize, &String)) -> Option<(usize, Class)> {
    let of = SLEEPING.iter().find(|(pattern, _)| matches(pattern, frame));
    of.map(|&(_, class)| (at, class))
}

fn nearest(class: Class, frames: &[String]) -> Option<&'static str> {
    let mut callers = 0;
    let mut near = |frame: &&String| {
        callers += usize::from(!is_machinery(frame));
        callers <= NEAR
    };
    let mut inner = "";
    frames
        .iter()
        .take_while(|frame| near(frame))
        .find_map(|frame| {
            let is = |pattern: &str| match pattern.split_once(' ') {
                Some((called, function)) => matches(called, inner) && matches(function, frame),
                None => matches(pattern, frame),
            };
            let rule = TABLE.iter().find(|row| row.0 == class && is(row.1));
            inner = frame;
            rule.map(|&(_, _, name)| name)
        })
}

fn class(kind: Kind) -> Option<Class> {
    Some(match kind {
        Kind::Spinlock => Spin,
        Kind::RwlockRead | Kind::RwlockWrite => Rwlock,
        Kind::Mutex => Mutex,
        Kind::RwsemRead | Kind::RwsemWrite => Rwsem,
        Kind::PercpuRwsem => Percpu,
        Kind::Futex | Kind::UserSpin | Kind::Own | Kind::Line => return None,
    })
}
