//! locks, epochs and counters that scale
//!
//! The library has spin locks, mutexes that sleep, a reader/writer lock, epochs and exact
//! per-thread counters. They are those of scalevm's kernel, with threads as CPUs.
//!
//! Objects are small, hold no memory of their own unless their page names a destroy function, and
//! all zeroes is their unlocked state: a static initialiser, an init function and calloc(3) do the
//! same. They must not move or be copied while a thread uses them. All functions take valid
//! pointers.
//!
//! Threads need no registration. The first call of a thread that needs a place takes the first that
//! is free; later calls find it in thread-local storage; when the thread ends, the place is free
//! again. Epochs and counters are for the threads in the first 1024 places. A thread that ends in
//! an epoch's section aborts the process.
//!
//! Errors are returned, never stored in errno, which no function changes. Misuse that a function
//! can see is an error or aborts the process with one line on standard error; the pages say which.
//! Nothing unwinds into the caller.
//!
//! No function may be called from a signal handler, nor be interrupted by pthread_cancel(3) of the
//! asynchronous kind or by longjmp(3). No function is a cancellation point.
//!
//! After fork(2) the child has one thread. In a child of a process with several threads, locks that
//! other threads held stay held, and sections that they were in stay open, so that waiting for
//! either never ends: use nothing of the library there before execve(2). The child of a process
//! with one thread may use all.
//!
//! ThreadSanitizer does not see into the library. Where its runtime is present, each function tells
//! it by __tsan_acquire and __tsan_release what it orders, as its page says; what the library does
//! inside is not checked.
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
