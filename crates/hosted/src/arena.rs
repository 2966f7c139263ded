//! Physical memory: one anonymous mapping, cut into frames.

use crate::Hosted;
use core::ops::{BitOr, Range};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use machine::{Frame, Memory, PAGE_SIZE, WORDS_PER_FRAME};
use std::io;

/// The frames of a machine, zero at first, unmapped at drop.
///
/// The mapping reserves only addresses; the host gives a frame memory at its first touch.
pub(crate) struct Arena {
    base: NonNull<u8>,
    frames: usize,
}

// SAFETY: the arena is memory, touched through atomics or by a frame's owner.
unsafe impl Send for Arena {}
// SAFETY: shared accesses to the memory are atomic; all others are by a frame's owner.
unsafe impl Sync for Arena {}

impl Arena {
    /// An arena without memory.
    pub(crate) const EMPTY: Arena = Arena {
        base: NonNull::dangling(),
        frames: 0,
    };

    /// An arena of `bytes`, rounded up to whole frames.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        let frames = bytes.div_ceil(PAGE_SIZE);
        if u32::try_from(frames).is_err() {
            let text = format!("{bytes} bytes are more frames than a 32-bit number counts");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if frames == 0 {
            return Ok(Self::EMPTY);
        }
        // SAFETY: a new anonymous mapping at an address of the host's choice.
        let base = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                frames * PAGE_SIZE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Arena { base, frames })
    }

    /// Revokes access to `frames`, which are the arena's: any access to one faults.
    pub(crate) fn forbid(&self, frames: Range<u32>) -> io::Result<()> {
        let start = self.at(Frame(frames.start));
        // SAFETY: the frames lie in the mapping, and an access to them is meant to fault.
        let done = unsafe {
            let bytes = frames.len() * PAGE_SIZE;
            libc::mprotect(start.as_ptr().cast(), bytes, libc::PROT_NONE)
        };
        match done {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The first byte of `frame`.
    #[inline]
    fn at(&self, frame: Frame) -> NonNull<u8> {
        assert!(frame.index() < self.frames, "no {frame:?} in this machine");
        // SAFETY: the frame lies in the mapping.
        unsafe { self.base.add(frame.index() * PAGE_SIZE) }
    }

    /// The words of `frame`.
    #[inline]
    fn words(&self, frame: Frame) -> &[AtomicU64; WORDS_PER_FRAME] {
        // SAFETY: the frame is mapped and aligned and lives as long as the arena; shared words are
        // accessed atomically.
        unsafe { self.at(frame).cast().as_ref() }
    }

    /// Word `index` of `frame`.
    #[inline]
    pub(crate) fn word(&self, frame: Frame, index: usize) -> &AtomicU64 {
        assert!(index < WORDS_PER_FRAME, "no word {index} in a frame");
        // SAFETY: the word lies in the frame, which is mapped and aligned and lives as long as the
        // arena; shared words are accessed atomically.
        unsafe { self.at(frame).cast::<AtomicU64>().add(index).as_ref() }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.frames > 0 {
            // SAFETY: `drop` has the arena exclusively, so nothing borrows from it.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.frames * PAGE_SIZE) };
        }
    }
}

// SAFETY: frames are disjoint page-aligned parts of a mapping that lives as long as
// the machine, and `word` points into them.
unsafe impl Memory for Hosted {
    fn frame_end(&self) -> usize {
        self.inner.usable.last().map_or(0, |last| last.end as usize)
    }

    fn usable(&self, each: &mut dyn FnMut(Range<u32>)) {
        self.inner.usable.iter().cloned().for_each(each);
    }

    #[inline(always)]
    fn allocated(&self, frame: Frame) {
        if let Some(oracle) = &self.inner.oracle {
            self.check_usable(frame);
            oracle.allocated(frame);
        }
    }

    #[inline(always)]
    fn freed(&self, frame: Frame) {
        if let Some(oracle) = &self.inner.oracle {
            oracle.freed(frame);
        }
    }

    fn owned(&self) -> &AtomicBool {
        &self.inner.owned
    }

    #[inline(always)]
    fn direct_map(&self, frame: Frame) -> NonNull<u8> {
        self.inner.arena.at(frame)
    }

    #[inline]
    unsafe fn word(&self, frame: Frame, index: usize) -> &AtomicU64 {
        self.inner.arena.word(frame, index)
    }

    #[inline]
    unsafe fn find_word(
        &self,
        frame: Frame,
        first: usize,
        end: usize,
        mask: u64,
    ) -> Option<(usize, u64)> {
        let words = &self.inner.arena.words(frame)[first..end];
        let found = |index: usize| {
            let value = words[index].load(Ordering::Relaxed);
            (value & mask != 0).then_some((first + index, value))
        };
        // Entries often follow one another; where they do not, most words are empty.
        if !words.is_empty()
            && let Some(at_once) = found(0)
        {
            return Some(at_once);
        }
        (empty_words(words, mask)..words.len()).find_map(found)
    }

    #[inline]
    unsafe fn read_words(&self, frame: Frame, first: usize, words: &mut [[u8; 8]]) {
        let from = &self.inner.arena.words(frame)[first..first + words.len()];
        // SAFETY: both have this many words.
        unsafe { copy_words(from.as_ptr().cast(), words.as_mut_ptr().cast(), from.len()) };
    }

    #[inline]
    unsafe fn write_words(&self, frame: Frame, first: usize, words: &[[u8; 8]]) {
        let to = &self.inner.arena.words(frame)[first..first + words.len()];
        // SAFETY: both have this many words, and those of a frame may be written through a shared
        // reference.
        unsafe {
            copy_words(
                words.as_ptr().cast(),
                to.as_ptr().cast_mut().cast(),
                to.len(),
            )
        };
    }

    #[inline(always)]
    unsafe fn zero(&self, frame: Frame) {
        fill_zero(self.direct_map(frame).cast());
    }

    unsafe fn copy(&self, from: Frame, to: Frame) {
        let [from, to] = [from, to].map(|frame| self.direct_map(frame).as_ptr());
        // SAFETY: both are frames.
        unsafe { copy_words(from, to, WORDS_PER_FRAME) };
    }
}

/// The number of words, from the first on, without a bit of `mask`: a multiple of 8, perhaps fewer
/// than there are.
#[inline(never)]
fn empty_words(words: &[AtomicU64], mask: u64) -> usize {
    const TOGETHER: usize = 8;
    let (groups, _) = words.as_chunks::<TOGETHER>();
    let is_empty = |words: &&[AtomicU64; TOGETHER]| {
        let words = words.iter().map(|word| word.load(Ordering::Relaxed));
        words.fold(0, BitOr::bitor) & mask == 0
    };
    TOGETHER * groups.iter().take_while(is_empty).count()
}

impl Hosted {
    /// Checks that the machine has handed over `frame`.
    fn check_usable(&self, frame: Frame) {
        let usable = &self.inner.usable;
        let range = usable.partition_point(|range| range.end <= frame.0);
        let is_usable = usable.get(range).is_some_and(|it| it.contains(&frame.0));
        assert!(
            is_usable,
            "{frame:?} is allocated although the machine has not handed it over"
        );
    }
}

// Filling and copying count as one relaxed access for each word: a task with a stale translation,
// left by a faulty kernel, may touch the frame meanwhile, and this must show as a wrong value, not
// as a data race. The string instructions behave so (they are opaque to the compiler) at full
// speed.

#[cfg(target_arch = "x86_64")]
#[inline]
fn fill_zero(to: NonNull<AtomicU64>) {
    // SAFETY: the caller passes the first word of a frame.
    unsafe {
        core::arch::asm!(
            "rep stosq",
            inout("rcx") WORDS_PER_FRAME => _,
            inout("rdi") to.as_ptr() => _,
            in("rax") 0u64,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// `from` and `to` must be `count` words each, one of the two of a frame and thus aligned.
#[cfg(target_arch = "x86_64")]
#[inline]
unsafe fn copy_words(from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: so says the caller.
    unsafe {
        core::arch::asm!(
            "rep movsq",
            inout("rcx") count => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn fill_zero(to: NonNull<AtomicU64>) {
    for i in 0..WORDS_PER_FRAME {
        // SAFETY: the caller passes the first word of a frame.
        unsafe { to.add(i).as_ref() }.store(0, core::sync::atomic::Ordering::Relaxed);
    }
}

/// # Safety
/// `from` and `to` must be `count` words each, one of the two of a frame and thus aligned.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy_words(from: *const u8, to: *mut u8, count: usize) {
    for i in 0..count {
        // SAFETY: so says the caller.
        unsafe {
            let word = from.cast::<u64>().add(i).read_unaligned();
            to.cast::<u64>().add(i).write_unaligned(word);
        }
    }
}
