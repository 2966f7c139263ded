//! Locks of programs, which the kernel sees as waits on a futex.

use super::{Wanted, matches};
use crate::symbols::{Function, Named};
use profile::Kind;

/// The kernel's side of a wait.
const WAITING: &[&str] = &[
    "futex_do_wait",
    "__futex_wait*",
    "futex_wait*",
    "do_futex_wait*",
];

/// Functions of libraries that wait on behalf of others.
const LIBRARY: &[&str] = &[
    "std::*",
    "core::*",
    "alloc::*",
    "<std::*",
    "<core::*",
    "<alloc::*",
    "__rustc*",
    "parking_lot*",
    "<parking_lot*",
    "lock_api::*",
    "<lock_api::*",
    "pthread_*",
    "__pthread_*",
    "___pthread_*",
    "__lll_*",
    "__new_sem_*",
    "sem_wait*",
    "syscall",
];

/// Names of locks, by a function that takes them, as others know them.
const LOCKS: &[(&str, &str)] = &[
    ("std::sync::poison::mutex::Mutex", "std::sync::Mutex"),
    ("std::sys::sync::mutex::", "std::sync::Mutex"),
    ("std::sync::mutex::Mutex", "std::sync::Mutex"),
    ("std::sync::poison::rwlock::RwLock", "std::sync::RwLock"),
    ("std::sys::sync::rwlock::", "std::sync::RwLock"),
    ("std::sync::poison::condvar::Condvar", "std::sync::Condvar"),
    ("std::sys::sync::condvar::", "std::sync::Condvar"),
    ("std::sync::barrier::Barrier", "std::sync::Barrier"),
    ("std::thread::park", "std::thread::park"),
    ("std::sys::sync::thread_parking", "std::thread::park"),
    ("parking_lot::raw_mutex", "parking_lot::Mutex"),
    ("parking_lot::raw_rwlock", "parking_lot::RwLock"),
    ("parking_lot::condvar", "parking_lot::Condvar"),
    ("pthread_mutex_lock", "pthread_mutex_lock"),
    ("__pthread_mutex_lock", "pthread_mutex_lock"),
    ("___pthread_mutex_lock", "pthread_mutex_lock"),
    ("pthread_rwlock_", "pthread_rwlock"),
    ("__pthread_rwlock_", "pthread_rwlock"),
    ("pthread_cond_", "pthread_cond"),
    ("__pthread_cond_", "pthread_cond"),
    ("pthread_join", "pthread_join"),
    ("__pthread_clockjoin", "pthread_join"),
];

/// What a stack off CPU waits for, if it waits on a futex.
pub(crate) fn futex(stack: &Named) -> Option<Wanted> {
    let waits = stack.kernel.iter().any(|frame| any(WAITING, frame));
    waits.then(|| Wanted {
        name: name(&stack.user).unwrap_or("futex").to_owned(),
        kind: Kind::Futex,
        caller: caller(&stack.user).to_owned(),
    })
}

/// The outermost lock named before the caller: a condition variable takes a mutex.
fn name(user: &[Function]) -> Option<&'static str> {
    let library = user.iter().take_while(|function| is_library(function));
    let known = |function: &Function| {
        let lock = LOCKS
            .iter()
            .find(|(start, _)| function.name.starts_with(start));
        lock.map(|&(_, name)| name)
    };
    library.filter_map(known).last()
}

/// The first function that is no library's; where all are, the last.
fn caller(user: &[Function]) -> &str {
    let own = user.iter().find(|function| !is_library(function));
    own.or(user.last())
        .map_or("[unknown]", |function| &function.name)
}

fn is_library(function: &Function) -> bool {
    function.system || any(LIBRARY, &function.name)
}

fn any(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}
