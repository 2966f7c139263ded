//! Parts of recorded programs: how they start, announce their steps, and wait.

use super::Linux;
use crate::os::processes::Exit;
use std::io;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};
use workloads::replay::{Part, Replay, Treatment};
use workloads::{Call, Error, work};

/// Exit code of a part whose memory was missing, like a shell's for the signal.
const CRASHED: u32 = 128 + libc::SIGSEGV as u32;
/// Exit code of a part that unwound.
const PANICKED: libc::c_int = 101;
/// The time after which a waiting part checks if the program has failed.
const PATIENCE: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// The steps that the parts of each task's program have announced, in memory that all of its
/// processes share.
pub struct Steps {
    words: &'static [Announced],
    parts: usize,
    /// The number of nanoseconds of [`work`] that a nanosecond of this computer takes.
    speed: f64,
}

/// A part's steps.
#[derive(Debug)]
#[repr(align(64))]
struct Announced {
    steps: AtomicU32,
    /// The number of parts that sleep, or are about to, until there are more.
    sleepers: AtomicU32,
    /// In the first part's: the error by which the program has failed, or 0.
    failed: AtomicU32,
}

/// The word to which a crash is reported: that of this process's program.
static FAILED: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

impl Steps {
    /// Those of `tasks` tasks.
    pub fn new(tasks: usize, replay: &Replay) -> io::Result<Self> {
        let count = tasks * replay.parts.len();
        // SAFETY: a new mapping at an address of the kernel's choice.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                count * size_of::<Announced>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Steps {
            // SAFETY: zeroes are valid; the mapping stays as long as this, and no reference of
            // another life leaves it.
            words: unsafe { slice::from_raw_parts(start.cast(), count) },
            parts: replay.parts.len(),
            speed: speed(),
        })
    }

    /// The words of a task's program.
    fn of(&self, task: usize) -> &[Announced] {
        &self.words[task * self.parts..][..self.parts]
    }

    /// Computes for `nanoseconds`.
    pub fn spend(&self, nanoseconds: u64) {
        work((nanoseconds as f64 * self.speed) as u64);
    }

    pub fn clear(&self, task: usize) {
        for one in self.of(task) {
            one.steps.store(0, Relaxed);
        }
    }

    /// Sequentially consistent, as the loads and stores of [`Steps::wait`] are: either this sees
    /// the sleeper, or the sleeper the steps.
    pub fn announce(&self, task: usize, part: u32, steps: u32) {
        let announced = &self.of(task)[part as usize];
        announced.steps.store(steps, SeqCst);
        if announced.sleepers.load(SeqCst) > 0 {
            // It fails only for an address that is not mapped.
            let _ = super::ipc::futex_wake(address(&announced.steps), u32::MAX >> 1);
        }
    }

    pub fn wait(&self, task: usize, part: u32, steps: u32) -> Result<(), Error> {
        let announced = &self.of(task)[part as usize];
        if announced.steps.load(SeqCst) >= steps {
            return Ok(());
        }
        announced.sleepers.fetch_add(1, SeqCst);
        let waited = loop {
            let now = announced.steps.load(SeqCst);
            if now >= steps {
                break Ok(());
            }
            match self.of(task)[0].failed.load(Relaxed) {
                0 => sleep_while(&announced.steps, now),
                error => break Err(Error::Failed(Call::Replay, error as i32)),
            }
        };
        announced.sleepers.fetch_sub(1, SeqCst);
        waited
    }

    /// Lets this process report to `task` that its memory was missing, as it ends.
    fn report_crashes(&self, task: usize) {
        extern "C" fn report(_: libc::c_int) {
            let failed = FAILED.load(Relaxed);
            // SAFETY: set below to a word that stays; the process ends as nothing else happens.
            unsafe {
                (*failed).store(CRASHED, Relaxed);
                libc::_exit(CRASHED as libc::c_int);
            }
        }
        let failed = &self.of(task)[0].failed;
        FAILED.store(ptr::from_ref(failed).cast_mut(), Relaxed);
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            // SAFETY: the handler stores a number and ends the process.
            unsafe { libc::signal(signal, report as *const () as libc::sighandler_t) };
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        let bytes = size_of_val(self.words);
        // SAFETY: the mapping of `new`; tasks that used it are gone.
        unsafe { libc::munmap(self.words.as_ptr().cast_mut().cast(), bytes) };
    }
}

fn address(word: &AtomicU32) -> usize {
    word.as_ptr().expose_provenance()
}

/// Sleeps while `word` holds `value`, or not as long.
fn sleep_while(word: &AtomicU32, value: u32) {
    // SAFETY: the kernel only reads the word and the time. All errors are reasons to look again.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            value,
            &PATIENCE,
        )
    };
}

/// The number of nanoseconds of [`work`] that this computer does in one: the most of several tries,
/// which nothing has interrupted.
fn speed() -> f64 {
    const TRIED: u64 = 1_000_000;
    let tried = (0..8).map(|_| {
        let began = Instant::now();
        work(TRIED);
        TRIED as f64 / began.elapsed().max(Duration::from_nanos(1)).as_nanos() as f64
    });
    tried.fold(0.0, f64::max)
}

/// Runs `part` in a process that `parent` has just forked; returns its exit code.
pub fn live(system: &mut Linux, part: Part<std::fs::File>, parent: libc::pid_t) -> libc::c_int {
    // Its parent waits for it. If that is killed, so is this; also if it was before prctl.
    // SAFETY: plain system calls.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            return 0;
        }
    }
    if let Some(steps) = system.prepared.steps() {
        steps.report_crashes(system.task);
    }
    code(part.run(system))
}

/// Runs `part` in a thread of its own.
pub fn spawn(
    mut system: Linux,
    part: Part<std::fs::File>,
) -> Result<thread::JoinHandle<u8>, Error> {
    let run = move || {
        super::spare_cancellation();
        let mut exit = Exit(PANICKED);
        let code = code(part.run(&mut system)) as u8;
        exit.0 = 0;
        std::mem::forget(exit);
        code
    };
    let thread = thread::Builder::new().name("part".into());
    thread
        .spawn(run)
        .map_err(|error| Error::Failed(Call::Thread, error.raw_os_error().unwrap_or(libc::EAGAIN)))
}

/// The exit code that says how a part has ended.
fn code(taken: Result<(), Error>) -> libc::c_int {
    match taken {
        Ok(()) => 0,
        Err(Error::Failed(_, errno)) => errno.clamp(1, 255),
        Err(_) => PANICKED,
    }
}

/// Treats `len` bytes at `start`.
pub fn treat(start: usize, len: usize, how: Treatment) -> Result<(), Error> {
    let start = ptr::with_exposed_provenance_mut::<libc::c_void>(start);
    // SAFETY: in each of these calls, a part's own mapping, to which there are no references; the
    // vector of `mincore` has a byte for each page.
    let done = unsafe {
        match how {
            Treatment::Lock => libc::mlock(start, len),
            Treatment::Unlock => libc::munlock(start, len),
            Treatment::Sync => libc::msync(start, len, libc::MS_ASYNC),
            Treatment::InCore => {
                let mut pages = vec![0; len.div_ceil(super::page_size())];
                libc::mincore(start, len, pages.as_mut_ptr())
            }
            Treatment::Discard => libc::madvise(start, len, libc::MADV_DONTNEED),
            Treatment::Free => libc::madvise(start, len, libc::MADV_FREE),
            Treatment::PageOut => libc::madvise(start, len, libc::MADV_PAGEOUT),
            Treatment::Cold => libc::madvise(start, len, libc::MADV_COLD),
            Treatment::Remove => libc::madvise(start, len, libc::MADV_REMOVE),
            Treatment::Normal => libc::madvise(start, len, libc::MADV_NORMAL),
            Treatment::Random => libc::madvise(start, len, libc::MADV_RANDOM),
            Treatment::Sequential => libc::madvise(start, len, libc::MADV_SEQUENTIAL),
            Treatment::DontDump => libc::madvise(start, len, libc::MADV_DONTDUMP),
            Treatment::DoDump => libc::madvise(start, len, libc::MADV_DODUMP),
            Treatment::PopulateRead => libc::madvise(start, len, libc::MADV_POPULATE_READ),
            Treatment::PopulateWrite => libc::madvise(start, len, libc::MADV_POPULATE_WRITE),
        }
    };
    super::answered(Call::Treat, done)
}
