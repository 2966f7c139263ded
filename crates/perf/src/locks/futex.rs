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

/// Where sources of such libraries are: Rust's own as it is built and as it is installed,
/// crates as Cargo unpacks them.
const SOURCES: &[&str] = &[
    "/rustc/",
    "/rustlib/src/rust/library/",
    "/parking_lot",
    "/lock_api-",
];

/// Names of locks as others know them, by a piece of the name or the source of a function
/// that takes them.
const LOCKS: &[(&str, &str)] = &[
    ("/sync/poison/mutex.rs", "std::sync::Mutex"),
    ("/sync/mutex/", "std::sync::Mutex"),
    ("sync::mutex::", "std::sync::Mutex"),
    ("sync::poison::mutex", "std::sync::Mutex"),
    ("/sync/poison/rwlock.rs", "std::sync::RwLock"),
    ("/sync/rwlock/", "std::sync::RwLock"),
    ("sync::rwlock::", "std::sync::RwLock"),
    ("sync::poison::rwlock", "std::sync::RwLock"),
    ("/sync/poison/condvar.rs", "std::sync::Condvar"),
    ("/sync/condvar/", "std::sync::Condvar"),
    ("sync::condvar::", "std::sync::Condvar"),
    ("/sync/barrier.rs", "std::sync::Barrier"),
    ("/thread_parking/", "std::thread::park"),
    ("thread_parking::", "std::thread::park"),
    ("/raw_mutex.rs", "parking_lot::Mutex"),
    ("raw_mutex::RawMutex", "parking_lot::Mutex"),
    ("/raw_rwlock.rs", "parking_lot::RwLock"),
    ("raw_rwlock::RawRwLock", "parking_lot::RwLock"),
    ("parking_lot::condvar", "parking_lot::Condvar"),
    ("pthread_mutex_", "pthread_mutex"),
    ("pthread_rwlock_", "pthread_rwlock"),
    ("pthread_cond_", "pthread_cond"),
    ("pthread_clockjoin", "pthread_join"),
    ("pthread_join", "pthread_join"),
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
        let is = |piece| function.name.contains(piece) || function.source.contains(piece);
        let lock = LOCKS.iter().find(|&&(piece, _)| is(piece));
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
    let source = |place: &&str| function.source.contains(place);
    function.system || any(LIBRARY, &function.name) || SOURCES.iter().any(source)
}

fn any(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}
