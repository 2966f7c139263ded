//! Locks of programs, which the kernel sees as futex waits.

use super::{Wanted, matches};
use crate::symbols::{Function, Named};
use profile::Kind;

/// The kernel functions of a futex wait.
const WAITING: &[&str] = &[
    "futex_do_wait",
    "__futex_wait*",
    "futex_wait*",
    "do_futex_wait*",
];

/// Library functions that wait on behalf of their callers.
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
    "sem_*",
    "syscall",
];

/// Source folders of such libraries: Rust's standard library as built and as installed, crates as
/// Cargo unpacks them.
const SOURCES: &[&str] = &[
    "/rustc/",
    "/rustlib/src/rust/library/",
    "/parking_lot",
    "/lock_api-",
];

/// Well-known names of locks, by a part of the name or source file of a function that acquires
/// them.
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
    ("__new_sem_", "semaphore"),
    ("sem_wait", "semaphore"),
    ("sem_timedwait", "semaphore"),
    ("sem_clockwait", "semaphore"),
];

/// What threads wait for that is no lock: another thread tells them to go on.
const CONDITIONS: &[&str] = &[
    "pthread_cond",
    "pthread_join",
    "semaphore",
    "std::sync::Barrier",
    "std::sync::Condvar",
    "std::thread::park",
    "parking_lot::Condvar",
];

/// Locks whose futex word identifies the lock; the others wait at words of several kinds, or at a
/// thread's own.
const THEMSELVES: &[&str] = &["pthread_mutex", "std::sync::Mutex", "futex"];

/// The lock or condition that a stack off CPU waits for, if it waits on a futex.
pub(crate) fn futex(stack: &Named) -> Option<Wanted> {
    let waits = stack.kernel.iter().any(|frame| any(WAITING, frame));
    waits.then(|| Wanted {
        name: name(&stack.user).unwrap_or("futex").to_owned(),
        kind: Kind::Futex,
        caller: caller(&stack.user),
    })
}

/// Returns true if it is a condition rather than a lock.
pub(crate) fn is_condition(wanted: &Wanted) -> bool {
    CONDITIONS.contains(&wanted.name.as_str())
}

/// Returns true if the futex word tells which lock this is.
pub(crate) fn is_itself(wanted: &Wanted) -> bool {
    THEMSELVES.contains(&wanted.name.as_str())
}

/// The lock that a stack spins for in a program, if a function's name says so.
pub(crate) fn user_spinning(stack: &Named) -> Option<Wanted> {
    const SPINNING: &[&str] = &[
        "pthread_spin_lock",
        "__pthread_spin_lock",
        "___pthread_spin_lock",
    ];
    let leaf = stack.user.first()?;
    any(SPINNING, &leaf.name).then(|| Wanted {
        name: "pthread_spinlock".to_owned(),
        kind: Kind::UserSpin,
        caller: caller(&stack.user),
    })
}

/// The outermost lock named before the caller: a condition variable acquires a mutex.
fn name(user: &[Function]) -> Option<&'static str> {
    let library = user.iter().take_while(|function| is_library(function));
    let known = |function: &Function| {
        let is = |piece| function.name.contains(piece) || function.source.contains(piece);
        let lock = LOCKS.iter().find(|&&(piece, _)| is(piece));
        lock.map(|&(_, name)| name)
    };
    library.filter_map(known).last()
}

/// The first function outside of libraries, with the calling line if known; the last one if all
/// are.
fn caller(user: &[Function]) -> String {
    let Some(caller) = own(user) else {
        return "[unknown]".to_owned();
    };
    let file = caller.source.rsplit('/').next().unwrap_or_default();
    match caller.line {
        0 => caller.name.clone(),
        line => format!("{} at {file}:{line}", caller.name),
    }
}

/// The name of the function of the program on whose behalf a stack runs; none without a stack.
pub(crate) fn own_function(user: &[Function]) -> Option<&str> {
    own(user).map(|function| function.name.as_str())
}

/// The first function outside of libraries; the last one if all are in them.
fn own(user: &[Function]) -> Option<&Function> {
    let own = user.iter().find(|function| !is_library(function));
    own.or(user.last())
}

fn is_library(function: &Function) -> bool {
    let source = |place: &&str| function.source.contains(place);
    function.system || any(LIBRARY, &function.name) || SOURCES.iter().any(source)
}

fn any(patterns: &[&str], name: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, name))
}
