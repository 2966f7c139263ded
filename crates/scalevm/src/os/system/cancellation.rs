//! libc's cancellation of threads, which nobody here asks for.

/// Spares the calling thread what cancellation costs.
///
/// In a process with several threads, glibc makes a thread cancellable before each call
/// that may block, and not so after it: two atomic instructions, a tenth of a poll or more.
/// It leaves them out if the thread always is, as will-it-scale's threads are. Nobody
/// cancels a thread here, so nothing else comes of it.
pub fn spare() {
    unsafe extern "C" {
        fn pthread_setcanceltype(kind: libc::c_int, old: *mut libc::c_int) -> libc::c_int;
    }
    const ASYNCHRONOUS: libc::c_int = 1; // of glibc and musl
    let mut old = 0;
    // SAFETY: room for the old kind; no thread is ever cancelled. An error would change
    // nothing but the cost.
    unsafe { pthread_setcanceltype(ASYNCHRONOUS, &mut old) };
}
