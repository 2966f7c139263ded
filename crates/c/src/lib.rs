//! locks, epochs and counters that scale
//!
//! The library has spin locks, mutexes that sleep, a reader/writer lock, epochs and exact
//! per-thread counters. They are those of scalevm's kernel, with threads as CPUs.
//!
//! Objects are small, and own no memory unless their page names a destroy function. All zeroes is
//! their initial state: a static initialiser, an init function and calloc(3) do the same. They must
//! not move or be copied while a thread uses them. All functions take valid pointers.
//!
//! Threads need no registration. A thread's first call that needs a place takes the first free one;
//! later calls find it in thread-local storage; the end of the thread frees it. Epochs and counters
//! are for the threads in the first 1024 places. A thread that ends in an epoch's section aborts
//! the process.
//!
//! Errors are returned, never stored in errno, which no function changes. Misuse that a function
//! can see is an error or aborts the process with one line on standard error; the pages say which.
//! Nothing unwinds into the caller.
//!
//! No function may be called from a signal handler, nor be interrupted by pthread_cancel(3) of the
//! asynchronous kind or by longjmp(3). No function is a cancellation point.
//!
//! After fork(2) the child has one thread. In a child of a process with several threads, locks that
//! other threads held stay held, and their sections stay open, so that a wait for either never
//! ends: use nothing of the library there before execve(2). The child of a process with one thread
//! may use everything.
//!
//! ThreadSanitizer does not see into the library. If its runtime is present, each function reports
//! the order that its page describes, by __tsan_acquire and __tsan_release; ThreadSanitizer does
//! not check what the library does inside.
#![warn(missing_docs)]
#![allow(
    clippy::missing_safety_doc,
    reason = "the contract of a function in C is its page"
)]
#![allow(non_camel_case_types, reason = "names of C")]

mod adaptive;
mod clh;
mod conbo;
mod counter;
mod epoch;
mod errno;
mod k42;
mod mcs;
mod mutex;
mod object;
mod process;
mod rwlock;
mod tas;
mod ticket;
mod tsan;
mod words;
