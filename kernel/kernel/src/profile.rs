//! The profile: samples of the CPUs' work, and the profile of the VM's locks.
//!
//! A program starts it by writing a number of samples a second to `/dev/profile`, and stops it by
//! writing 0. `/proc/profile` has a line for each stack that was seen, `sample NANOSECONDS ADDRESS
//! …` from the innermost address on; for each lock that was waited for, `lock ACQUISITIONS WAITS
//! NANOSECONDS LONGEST PLACE CLASS`, if the kernel is built with the feature `lock-profile`; and
//! `lost SAMPLES` if there was no room for some. The thread that started the profile is left out.

use crate::errno::Errno;
use crate::single::Single;
use crate::system::Lock;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicUsize, Ordering};
use lock_api::Mutex;
use machine::{Tasks, Topology};
use metal::sample::{self, Sample};
use metal::{MOST_CPUS, Metal};
use sync::EMBEDDER;
use sync::spin::TestAndSet;
use sync::watch::profile::{self as locks, Row};

/// Words for the samples of a CPU: enough for about 20 seconds at the usual frequency.
const WORDS: usize = 512 << 10;
/// The most samples a second.
const MOST: u64 = 20_000;
const SECOND: u64 = 1_000_000_000;

/// The samples of a CPU: the number of addresses, nanoseconds, and the addresses.
struct Seen {
    words: Vec<usize>,
    lost: u64,
}

/// The samples of each CPU. A sample that finds the lock taken is lost.
static SEEN: [Mutex<TestAndSet<Metal>, Seen>; MOST_CPUS] = [const {
    Mutex::new(Seen {
        words: Vec::new(),
        lost: 0,
    })
}; _];
/// The thread that has started the profile, as [`caller`] numbers it. It guards no other memory:
/// relaxed.
static LEFT_OUT: AtomicUsize = AtomicUsize::new(0);
/// Held by a thread that starts, stops or reads the profile.
pub static PROFILE: Single<Lock<()>> = Single::new();

/// Starts or stops the profile, as `words` says.
pub fn control(words: &[u8]) -> Result<usize, Errno> {
    let text = str::from_utf8(words).map_err(|_| Errno::INVAL)?;
    let frequency: u64 = text.trim().parse().map_err(|_| Errno::INVAL)?;
    let _alone = PROFILE.lock();
    match frequency {
        0 => stop(),
        1..=MOST => start(SECOND / frequency)?,
        _ => return Err(Errno::INVAL),
    }
    Ok(words.len())
}

fn start(period: u64) -> Result<(), Errno> {
    stop();
    let cpus = Metal.cpus().len();
    for seen in &SEEN[..cpus] {
        let mut words = Vec::new();
        words.try_reserve_exact(WORDS).map_err(|_| Errno::NOMEM)?;
        *seen.lock() = Seen { words, lost: 0 };
    }
    let tables = locks::of(Metal::anchor());
    tables.reset();
    tables.start(cpus).map_err(|_| Errno::NOMEM)?;
    LEFT_OUT.store(caller(), Ordering::Relaxed);
    // SAFETY: under the lock, and always with this function.
    unsafe { sample::begin(period, take) };
    Ok(())
}

fn stop() {
    sample::end();
    locks::of(Metal::anchor()).stop();
}

/// A number for the thread that the CPU runs; 0 for one of the kernel's own tasks.
fn caller() -> usize {
    Metal::with_locals(|locals| locals.words[EMBEDDER].get())
}

/// Records a sample. Runs in the handler of an interrupt.
fn take(sample: &Sample) {
    if caller() == LEFT_OUT.load(Ordering::Relaxed) {
        return;
    }
    if let Some(mut seen) = SEEN[sample.cpu].try_lock() {
        seen.add(sample);
    }
}

impl Seen {
    fn add(&mut self, sample: &Sample) {
        let before = self.words.len();
        let head = [0, sample.elapsed as usize, sample.at];
        for word in head.into_iter().chain(sample.callers()) {
            // The handler allocates no memory.
            if self.words.len() == self.words.capacity() {
                self.words.truncate(before);
                self.lost += 1;
                return;
            }
            self.words.push(word);
        }
        self.words[before] = self.words.len() - before - 2;
    }

    /// Adds the nanoseconds of each stack to `stacks`.
    fn sum<'a>(&'a self, stacks: &mut BTreeMap<&'a [usize], usize>) {
        let mut rest = &self.words[..];
        while let [count, nanoseconds, after @ ..] = rest {
            let (stack, after) = after.split_at(*count);
            *stacks.entry(stack).or_default() += nanoseconds;
            rest = after;
        }
    }
}

/// The profile so far, as text.
pub fn text(to: &mut impl Write) -> fmt::Result {
    let _alone = PROFILE.lock();
    for seen in &SEEN[..Metal.cpus().len()] {
        let seen = seen.lock();
        let mut stacks = BTreeMap::new();
        seen.sum(&mut stacks);
        for (stack, nanoseconds) in stacks {
            write!(to, "sample {nanoseconds}")?;
            for address in stack {
                write!(to, " {address:x}")?;
            }
            writeln!(to)?;
        }
        if seen.lost > 0 {
            writeln!(to, "lost {}", seen.lost)?;
        }
    }
    let rows = locks::of(Metal::anchor()).report();
    let mut waited = rows.iter().filter(|row| row.contended > 0);
    waited.try_for_each(|row| lock(to, row))
}

fn lock(to: &mut impl Write, row: &Row) -> fmt::Result {
    let Row {
        acquisitions,
        contended,
        wait,
        max_wait,
        file,
        line,
        class,
        ..
    } = row;
    writeln!(
        to,
        "lock {acquisitions} {contended} {wait} {max_wait} {file}:{line} {class}"
    )
}
