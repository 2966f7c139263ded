//! Linux's system calls.
//!
//! A module has the calls of one subject; [`CALLS`] lists all calls. A call gets the thread and its
//! arguments, and returns a value or an error. To add one, write it and add its line.

mod affinity;
mod allocate;
mod attributes;
mod clone3;
mod directories;
mod epoll;
mod event;
mod extended;
mod file;
mod futex;
mod identity;
mod inotify;
mod ioctl;
mod jobs;
mod limits;
mod membarrier;
mod memory;
mod messages;
mod names;
mod numbered;
mod open;
mod pidfd;
mod poll;
mod priority;
mod process;
mod records;
mod segments;
mod semaphores;
mod sendfile;
mod signal;
mod signalfd;
mod socket;
mod splice;
mod statx;
mod thread;
mod time;
mod timerfd;
mod timers;
mod transfer;
mod usage;
mod users;
mod waitid;

use crate::errno::Errno;
use crate::heap;
use crate::process::{Interrupted, Thread};
use crate::system::system;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};
use ipc::{Entry, Kernel};
use linux_raw_sys::general::*;
use metal::report::CONSOLE;
use syscalls::Sysno;

/// A call's arguments.
pub type Arguments = [usize; 6];
/// The result of a call.
pub type Answer = Result<usize, Errno>;

type Call = fn(&mut Thread, Arguments) -> Answer;

/// The calls: number, why the thread enters the kernel, and the function.
#[rustfmt::skip]
const CALLS: &[(u32, Entry, Call)] = &[
    (__NR_read, Entry::Read, transfer::read),
    (__NR_write, Entry::Write, transfer::write),
    (__NR_readv, Entry::Read, transfer::readv),
    (__NR_writev, Entry::Write, transfer::writev),
    (__NR_pread64, Entry::File, transfer::pread),
    (__NR_pwrite64, Entry::File, transfer::pwrite),
    (__NR_preadv, Entry::File, transfer::preadv),
    (__NR_pwritev, Entry::File, transfer::pwritev),
    (__NR_preadv2, Entry::File, transfer::preadv2),
    (__NR_pwritev2, Entry::File, transfer::pwritev2),
    (__NR_lseek, Entry::File, file::lseek),
    (__NR_close, Entry::Descriptor, file::close),
    (__NR_close_range, Entry::Descriptor, file::close_range),
    (__NR_dup, Entry::Descriptor, file::dup),
    (__NR_dup2, Entry::Descriptor, file::dup2),
    (__NR_dup3, Entry::Descriptor, file::dup3),
    (__NR_fcntl, Entry::Descriptor, file::fcntl),
    (__NR_pipe, Entry::Descriptor, file::pipe),
    (__NR_pipe2, Entry::Descriptor, file::pipe2),
    (__NR_eventfd, Entry::Descriptor, event::eventfd),
    (__NR_eventfd2, Entry::Descriptor, event::eventfd2),

    (__NR_socket, Entry::Descriptor, socket::socket),
    (__NR_bind, Entry::Descriptor, socket::bind),
    (__NR_listen, Entry::File, socket::listen),
    (__NR_connect, Entry::Read, socket::connect),
    (__NR_accept, Entry::Read, socket::accept),
    (__NR_accept4, Entry::Read, socket::accept4),
    (__NR_socketpair, Entry::Descriptor, socket::socketpair),
    (__NR_sendto, Entry::Write, socket::sendto),
    (__NR_sendmsg, Entry::Write, socket::sendmsg),
    (__NR_recvfrom, Entry::Read, socket::recvfrom),
    (__NR_recvmsg, Entry::Read, socket::recvmsg),
    (__NR_sendmmsg, Entry::Write, socket::sendmmsg),
    (__NR_recvmmsg, Entry::Read, socket::recvmmsg),
    (__NR_shutdown, Entry::File, socket::shutdown),
    (__NR_setsockopt, Entry::File, socket::setsockopt),
    (__NR_getsockopt, Entry::File, socket::getsockopt),
    (__NR_getsockname, Entry::File, socket::getsockname),
    (__NR_getpeername, Entry::File, socket::getpeername),

    (__NR_inotify_init, Entry::Descriptor, inotify::inotify_init),
    (__NR_inotify_init1, Entry::Descriptor, inotify::inotify_init1),
    (__NR_inotify_add_watch, Entry::File, inotify::inotify_add_watch),
    (__NR_inotify_rm_watch, Entry::File, inotify::inotify_rm_watch),
    (__NR_signalfd, Entry::Descriptor, signalfd::signalfd),
    (__NR_signalfd4, Entry::Descriptor, signalfd::signalfd4),
    (__NR_timerfd_create, Entry::Descriptor, timerfd::timerfd_create),
    (__NR_timerfd_settime, Entry::File, timerfd::timerfd_settime),
    (__NR_timerfd_gettime, Entry::File, timerfd::timerfd_gettime),
    (__NR_ioctl, Entry::File, ioctl::ioctl),
    (__NR_fstat, Entry::File, file::fstat),
    (__NR_fsync, Entry::File, file::fsync),
    (__NR_fdatasync, Entry::File, file::fsync),
    (__NR_sync, Entry::File, file::sync),
    (__NR_syncfs, Entry::File, file::syncfs),
    (__NR_sync_file_range, Entry::File, file::sync_file_range),
    (__NR_poll, Entry::Poll, poll::poll),
    (__NR_ppoll, Entry::Poll, poll::ppoll),
    (__NR_select, Entry::Poll, poll::select),
    (__NR_pselect6, Entry::Poll, poll::pselect6),
    (__NR_epoll_create, Entry::Descriptor, epoll::epoll_create),
    (__NR_epoll_create1, Entry::Descriptor, epoll::epoll_create1),
    (__NR_epoll_ctl, Entry::Descriptor, epoll::epoll_ctl),
    (__NR_epoll_wait, Entry::Poll, epoll::epoll_wait),
    (__NR_epoll_pwait, Entry::Poll, epoll::epoll_pwait),
    (__NR_epoll_pwait2, Entry::Poll, epoll::epoll_pwait2),

    (__NR_open, Entry::Descriptor, open::open),
    (__NR_openat, Entry::Descriptor, open::openat),
    (__NR_creat, Entry::Descriptor, open::creat),
    (__NR_stat, Entry::File, names::stat),
    (__NR_lstat, Entry::File, names::lstat),
    (__NR_newfstatat, Entry::File, names::newfstatat),
    (__NR_statx, Entry::File, statx::statx),
    (__NR_access, Entry::File, names::access),
    (__NR_faccessat, Entry::File, names::faccessat),
    (__NR_faccessat2, Entry::File, names::faccessat2),
    (__NR_readlink, Entry::File, names::readlink),
    (__NR_readlinkat, Entry::File, names::readlinkat),
    (__NR_getdents64, Entry::File, directories::getdents64),
    (__NR_mkdir, Entry::Descriptor, names::mkdir),
    (__NR_mkdirat, Entry::Descriptor, names::mkdirat),
    (__NR_mknod, Entry::Descriptor, names::mknod),
    (__NR_mknodat, Entry::Descriptor, names::mknodat),
    (__NR_rmdir, Entry::Descriptor, names::rmdir),
    (__NR_unlink, Entry::Descriptor, names::unlink),
    (__NR_unlinkat, Entry::Descriptor, names::unlinkat),
    (__NR_symlink, Entry::Descriptor, names::symlink),
    (__NR_symlinkat, Entry::Descriptor, names::symlinkat),
    (__NR_rename, Entry::Descriptor, directories::rename),
    (__NR_renameat, Entry::Descriptor, directories::renameat),
    (__NR_renameat2, Entry::Descriptor, directories::renameat2),
    (__NR_chmod, Entry::File, attributes::chmod),
    (__NR_chdir, Entry::File, names::chdir),
    (__NR_fchdir, Entry::File, names::fchdir),
    (__NR_getcwd, Entry::File, names::getcwd),
    (__NR_umask, Entry::File, names::umask),

    (__NR_truncate, Entry::File, allocate::truncate),
    (__NR_ftruncate, Entry::File, allocate::ftruncate),
    (__NR_fallocate, Entry::File, allocate::fallocate),
    (__NR_fadvise64, Entry::File, allocate::fadvise64),
    (__NR_memfd_create, Entry::Descriptor, allocate::memfd_create),
    (__NR_statfs, Entry::File, allocate::statfs),
    (__NR_fstatfs, Entry::File, allocate::fstatfs),
    (__NR_sendfile, Entry::File, sendfile::sendfile),
    (__NR_splice, Entry::File, splice::splice),
    (__NR_tee, Entry::File, splice::tee),
    (__NR_vmsplice, Entry::File, splice::vmsplice),
    (__NR_copy_file_range, Entry::File, sendfile::copy_file_range),
    (__NR_link, Entry::Descriptor, attributes::link),
    (__NR_linkat, Entry::Descriptor, attributes::linkat),
    (__NR_chown, Entry::File, attributes::chown),
    (__NR_lchown, Entry::File, attributes::lchown),
    (__NR_fchown, Entry::File, attributes::fchown),
    (__NR_fchownat, Entry::File, attributes::fchownat),
    (__NR_fchmod, Entry::File, attributes::fchmod),
    (__NR_fchmodat, Entry::File, attributes::fchmodat),
    (__NR_fchmodat2, Entry::File, attributes::fchmodat2),
    (__NR_utimensat, Entry::File, attributes::utimensat),
    (__NR_flock, Entry::File, attributes::flock),

    (__NR_setxattr, Entry::File, extended::one),
    (__NR_lsetxattr, Entry::File, extended::one_of_link),
    (__NR_fsetxattr, Entry::File, extended::one_of_file),
    (__NR_getxattr, Entry::File, extended::one),
    (__NR_lgetxattr, Entry::File, extended::one_of_link),
    (__NR_fgetxattr, Entry::File, extended::one_of_file),
    (__NR_listxattr, Entry::File, extended::listxattr),
    (__NR_llistxattr, Entry::File, extended::llistxattr),
    (__NR_flistxattr, Entry::File, extended::flistxattr),
    (__NR_removexattr, Entry::File, extended::one),
    (__NR_lremovexattr, Entry::File, extended::one_of_link),
    (__NR_fremovexattr, Entry::File, extended::one_of_file),

    (__NR_shmget, Entry::Memory, segments::shmget),
    (__NR_shmat, Entry::MapFile, segments::shmat),
    (__NR_shmdt, Entry::Unmap, segments::shmdt),
    (__NR_shmctl, Entry::Memory, segments::shmctl),

    (__NR_semget, Entry::Memory, semaphores::semget),
    (__NR_semop, Entry::Sleep, semaphores::semop),
    (__NR_semtimedop, Entry::Sleep, semaphores::semtimedop),
    (__NR_semctl, Entry::Memory, semaphores::semctl),

    (__NR_msgget, Entry::Memory, messages::msgget),
    (__NR_msgsnd, Entry::Sleep, messages::msgsnd),
    (__NR_msgrcv, Entry::Sleep, messages::msgrcv),
    (__NR_msgctl, Entry::Memory, messages::msgctl),

    (__NR_getitimer, Entry::Memory, timers::getitimer),
    (__NR_getrusage, Entry::Memory, usage::getrusage),
    (__NR_times, Entry::Memory, usage::times),
    (__NR_sysinfo, Entry::Memory, usage::sysinfo),
    (__NR_getcpu, Entry::Memory, affinity::getcpu),
    (__NR_capget, Entry::Memory, usage::capget),

    (__NR_prlimit64, Entry::Memory, limits::prlimit64),
    (__NR_getrlimit, Entry::Memory, limits::getrlimit),
    (__NR_setrlimit, Entry::Memory, limits::setrlimit),

    (__NR_mmap, Entry::MapAnonymous, memory::mmap),
    (__NR_munmap, Entry::Unmap, memory::munmap),
    (__NR_mprotect, Entry::Protect, memory::mprotect),
    (__NR_madvise, Entry::Memory, memory::madvise),
    (__NR_mremap, Entry::Memory, memory::mremap),
    (__NR_msync, Entry::Memory, memory::msync),
    (__NR_mincore, Entry::Memory, memory::mincore),
    (__NR_mlock, Entry::Memory, memory::mlock),
    (__NR_mlock2, Entry::Memory, memory::mlock2),
    (__NR_munlock, Entry::Memory, memory::munlock),
    (__NR_mlockall, Entry::Memory, memory::mlockall),
    (__NR_munlockall, Entry::Memory, memory::munlockall),
    (__NR_brk, Entry::Break, memory::brk),

    (__NR_fork, Entry::Fork, process::fork),
    (__NR_vfork, Entry::Fork, process::vfork),
    (__NR_clone, Entry::Fork, process::clone),
    (__NR_execve, Entry::Exec, process::execve),
    (__NR_exit, Entry::Exit, process::exit),
    (__NR_exit_group, Entry::Exit, process::exit_group),
    (__NR_wait4, Entry::Wait, process::wait4),
    (__NR_waitid, Entry::Wait, waitid::waitid),
    (__NR_clone3, Entry::Fork, clone3::clone3),

    (__NR_pidfd_open, Entry::Descriptor, pidfd::pidfd_open),
    (__NR_pidfd_send_signal, Entry::Memory, pidfd::pidfd_send_signal),
    (__NR_pidfd_getfd, Entry::Descriptor, pidfd::pidfd_getfd),

    (__NR_setpgid, Entry::Memory, jobs::setpgid),
    (__NR_getpgid, Entry::Memory, jobs::getpgid),
    (__NR_getpgrp, Entry::Memory, jobs::getpgrp),
    (__NR_setsid, Entry::Memory, jobs::setsid),
    (__NR_getsid, Entry::Memory, jobs::getsid),

    (__NR_arch_prctl, Entry::Memory, thread::arch_prctl),
    (__NR_set_tid_address, Entry::Memory, thread::set_tid_address),
    (__NR_set_robust_list, Entry::Memory, thread::set_robust_list),
    (__NR_get_robust_list, Entry::Memory, thread::get_robust_list),
    (__NR_gettid, Entry::Memory, thread::gettid),
    (__NR_sched_yield, Entry::Sleep, thread::sched_yield),
    (__NR_sched_getaffinity, Entry::Memory, affinity::sched_getaffinity),
    (__NR_sched_setaffinity, Entry::Memory, affinity::sched_setaffinity),
    (__NR_getpriority, Entry::Memory, priority::getpriority),
    (__NR_setpriority, Entry::Memory, priority::setpriority),
    (__NR_sched_getscheduler, Entry::Memory, priority::sched_getscheduler),
    (__NR_sched_setscheduler, Entry::Memory, priority::sched_setscheduler),
    (__NR_sched_getparam, Entry::Memory, priority::sched_getparam),
    (__NR_sched_setparam, Entry::Memory, priority::sched_setparam),
    (__NR_sched_get_priority_max, Entry::Memory, priority::sched_get_priority_max),
    (__NR_sched_get_priority_min, Entry::Memory, priority::sched_get_priority_min),
    (__NR_membarrier, Entry::Memory, membarrier::membarrier),
    (__NR_prctl, Entry::Memory, thread::prctl),
    (__NR_futex, Entry::Futex, futex::futex),

    (__NR_rt_sigaction, Entry::Memory, signal::rt_sigaction),
    (__NR_rt_sigprocmask, Entry::Memory, signal::rt_sigprocmask),
    (__NR_pause, Entry::Sleep, signal::pause),
    (__NR_rt_sigsuspend, Entry::Sleep, signal::rt_sigsuspend),
    (__NR_rt_sigreturn, Entry::Memory, signal::rt_sigreturn),
    (__NR_rt_sigpending, Entry::Memory, signal::rt_sigpending),
    (__NR_rt_sigtimedwait, Entry::Sleep, signal::rt_sigtimedwait),
    (__NR_rt_sigqueueinfo, Entry::Memory, signal::rt_sigqueueinfo),
    (__NR_rt_tgsigqueueinfo, Entry::Memory, signal::rt_tgsigqueueinfo),
    (__NR_sigaltstack, Entry::Memory, signal::sigaltstack),
    (__NR_kill, Entry::Memory, signal::kill),
    (__NR_tkill, Entry::Memory, signal::tkill),
    (__NR_tgkill, Entry::Memory, signal::tgkill),

    (__NR_nanosleep, Entry::Sleep, time::nanosleep),
    (__NR_clock_nanosleep, Entry::Sleep, time::clock_nanosleep),
    (__NR_clock_gettime, Entry::Memory, time::clock_gettime),
    (__NR_clock_getres, Entry::Memory, time::clock_getres),
    (__NR_gettimeofday, Entry::Memory, time::gettimeofday),
    (__NR_time, Entry::Memory, time::time),
    (__NR_alarm, Entry::Memory, timers::alarm),
    (__NR_setitimer, Entry::Memory, timers::setitimer),

    (__NR_getpid, Entry::Memory, identity::getpid),
    (__NR_getppid, Entry::Memory, identity::getppid),

    (__NR_getuid, Entry::Memory, users::getuid),
    (__NR_geteuid, Entry::Memory, users::geteuid),
    (__NR_getgid, Entry::Memory, users::getgid),
    (__NR_getegid, Entry::Memory, users::getegid),
    (__NR_setuid, Entry::Memory, users::setuid),
    (__NR_setgid, Entry::Memory, users::setgid),
    (__NR_setreuid, Entry::Memory, users::setreuid),
    (__NR_setregid, Entry::Memory, users::setregid),
    (__NR_setresuid, Entry::Memory, users::setresuid),
    (__NR_setresgid, Entry::Memory, users::setresgid),
    (__NR_getresuid, Entry::Memory, users::getresuid),
    (__NR_getresgid, Entry::Memory, users::getresgid),
    (__NR_setfsuid, Entry::Memory, users::setfsuid),
    (__NR_setfsgid, Entry::Memory, users::setfsgid),
    (__NR_getgroups, Entry::Memory, users::getgroups),
    (__NR_setgroups, Entry::Memory, users::setgroups),

    (__NR_uname, Entry::Memory, identity::uname),
    (__NR_getrandom, Entry::Memory, identity::getrandom),
];

/// The calls that create or grow lasting objects: refused while the kernel's heap is short.
#[rustfmt::skip]
const MAKES: &[u32] = &[
    __NR_open, __NR_openat, __NR_creat, __NR_mkdir, __NR_mkdirat, __NR_mknod, __NR_mknodat,
    __NR_symlink, __NR_symlinkat, __NR_link, __NR_linkat, __NR_rename, __NR_renameat,
    __NR_renameat2, __NR_memfd_create,
    __NR_dup, __NR_dup2, __NR_dup3, __NR_flock, __NR_pipe, __NR_pipe2, __NR_eventfd, __NR_eventfd2,
    __NR_epoll_create, __NR_epoll_create1, __NR_timerfd_create, __NR_signalfd, __NR_signalfd4,
    __NR_pidfd_open, __NR_pidfd_getfd,
    __NR_inotify_init, __NR_inotify_init1, __NR_inotify_add_watch,
    __NR_socket, __NR_socketpair, __NR_bind, __NR_connect, __NR_accept, __NR_accept4,
    __NR_sendto, __NR_sendmsg, __NR_sendmmsg,
    __NR_shmget, __NR_shmat, __NR_semget, __NR_semop, __NR_semtimedop, __NR_msgget, __NR_msgsnd,
    __NR_mmap, __NR_mprotect, __NR_madvise, __NR_mremap, __NR_mlock, __NR_mlock2, __NR_mlockall,
    __NR_truncate, __NR_ftruncate, __NR_fallocate,
];

/// One above the highest number of a call.
const NUMBERS: usize = 512;

/// A call's entry in the table.
#[derive(Clone, Copy)]
struct Known {
    why: Entry,
    call: Call,
    makes: bool,
}

/// The entry of a number without a call.
const MISSING: Known = Known {
    why: Entry::Memory,
    call: missing,
    makes: false,
};

/// The calls by number.
static BY_NUMBER: [Known; NUMBERS] = {
    let mut calls = [MISSING; NUMBERS];
    let (mut known, mut at) = ([false; NUMBERS], 0);
    while at < CALLS.len() {
        let (number, why, call) = CALLS[at];
        assert!(!known[number as usize], "a call has one line");
        known[number as usize] = true;
        calls[number as usize] = Known {
            why,
            call,
            makes: false,
        };
        at += 1;
    }
    at = 0;
    while at < MAKES.len() {
        assert!(
            known[MAKES[at] as usize],
            "a call that makes something is there"
        );
        calls[MAKES[at] as usize].makes = true;
        at += 1;
    }
    calls
};

/// Performs the system call that the thread asks for.
#[inline]
pub fn call(thread: &mut Thread) {
    let number = thread.frame.rax;
    let arguments = thread.frame.arguments();
    let Known { why, call, makes } = BY_NUMBER.get(number).copied().unwrap_or(MISSING);
    let kernel = &system().kernel;
    kernel.enter(why);
    let answer = if makes && heap::is_short() {
        Err(Errno::NOMEM)
    } else {
        call(thread, arguments)
    };
    kernel.leave(why);
    match answer {
        Ok(value) => {
            thread.until = None;
            thread.frame.rax = value;
        }
        Err(Errno::INTR) => {
            // A restarted call with a time limit would begin again with all of it.
            let has_limit = thread.until.is_some();
            let ends_with_handler = has_limit || matches!(why, Entry::Sleep | Entry::Poll);
            thread.interrupted(Interrupted {
                number,
                ends_with_handler,
            });
            thread.frame.rax = Errno::INTR.value();
        }
        Err(errno) => {
            thread.until = None;
            thread.frame.rax = errno.value();
        }
    }
}

/// The function of a missing call.
fn missing(thread: &mut Thread, _: Arguments) -> Answer {
    /// A bit for each number that was reported.
    static NAMED: [AtomicU64; NUMBERS / 64] = [const { AtomicU64::new(0) }; NUMBERS / 64];
    let number = thread.frame.rax;
    let bit = 1 << (number % 64);
    let is_new = NAMED
        .get(number / 64)
        .is_none_or(|word| word.fetch_or(bit, Ordering::Relaxed) & bit == 0);
    if system().is_strict && is_new {
        let mut console = CONSOLE;
        // Writing to the console does not fail.
        let _ = match Sysno::new(number) {
            Some(call) => writeln!(console, "unsupported system call {call} ({number})"),
            None => writeln!(console, "unsupported system call {number}"),
        };
    }
    Err(Errno::NOSYS)
}
