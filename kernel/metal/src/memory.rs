//! Physical memory: the firmware's map, without the kernel's own part.

use crate::Metal;
use core::arch::asm;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use machine::{Frame, Memory, PAGE_SIZE, WORDS_PER_FRAME, pte};

/// The virtual address of physical address 0.
pub const DIRECT_MAP: usize = 0xffff_8000_0000_0000;
/// Virtual minus physical addresses of the kernel's image.
const IMAGE: usize = 0xffff_ffff_8000_0000;
/// The end of the memory of firmware and loader, in which the other CPUs also start.
const LOW: u64 = 1 << 20;
/// The end of the memory that `boot.s` maps.
pub(crate) const MAPPED: u64 = 4 << 30;
/// Bit of an entry: it is valid in all address spaces.
const GLOBAL: u64 = 1 << 8;
/// The most ranges of usable frames.
const RANGES: usize = 32;
/// The least size of the kernel's heap, which is otherwise a part of all memory.
const LEAST_HEAP: u64 = 16 << 20;
const HEAP_PART: u64 = 8;

unsafe extern "C" {
    static kernel_end: u8;
    static boot_root: u8;
    static direct_upper: [AtomicU64; pte::ENTRIES];
}

/// The usable frames: `start << 32 | end` of each range. Written once, by `begin`.
static USABLE: [AtomicU64; RANGES] = [const { AtomicU64::new(0) }; RANGES];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// True while a VM has the usable frames.
static OWNED: AtomicBool = AtomicBool::new(false);
/// The heap's first physical address, and its bytes. Written once, by `begin`.
static HEAP: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// The virtual address of a physical address.
#[inline]
pub(crate) fn physical<T>(address: u64) -> *const T {
    (DIRECT_MAP + address as usize) as *const T
}

/// The physical address of a static of the kernel's image.
pub(crate) fn image_address<T>(place: *const T) -> u64 {
    (place.addr() - IMAGE) as u64
}

/// The kernel's root table.
pub(crate) fn kernel_root() -> Frame {
    Frame::containing(image_address(&raw const boot_root))
}

/// The memory that belongs to the kernel's heap.
pub fn heap() -> (*mut u8, usize) {
    let [address, bytes] = [0, 1].map(|index| HEAP[index].load(Ordering::Relaxed));
    (physical::<u8>(address).cast_mut(), bytes as usize)
}

/// Divides memory: `ram` are the firmware's ranges, ascending; `initrd` belongs to the kernel.
pub(crate) fn begin(ram: impl Iterator<Item = Range<u64>> + Clone, initrd: Range<u64>) {
    let past = image_address(&raw const kernel_end);
    let free = ram.flat_map(|range| {
        let start = range.start.max(LOW).max(past);
        let before = start..range.end.min(initrd.start.max(start));
        let after = start.max(initrd.end)..range.end;
        if initrd.is_empty() || initrd.start >= range.end || initrd.end <= start {
            [start..range.end, 0..0]
        } else {
            [before, after]
        }
    });
    let page = PAGE_SIZE as u64;
    let free = free.map(|range| range.start.next_multiple_of(page)..range.end & !(page - 1));
    let free = free.filter(|range| range.start < range.end);
    let total: u64 = free.clone().map(|range| range.end - range.start).sum();
    let bytes = (total / HEAP_PART).max(LEAST_HEAP) & !(page - 1);
    // The heap is the end of the last range below 4 GiB that has room for it.
    let fits = |range: &Range<u64>| range.end <= MAPPED && range.end - range.start > bytes;
    let host = free
        .clone()
        .filter(fits)
        .last()
        .expect("no room for the kernel's heap");
    let heap = host.end - bytes..host.end;
    HEAP[0].store(heap.start, Ordering::Relaxed);
    HEAP[1].store(bytes, Ordering::Relaxed);
    for range in free {
        let end = if range.end == heap.end {
            heap.start
        } else {
            range.end
        };
        push(range.start, end);
    }
    // The tables that map the memory above come from the heap's end, and are never freed.
    extend_direct_map();
}

fn push(start: u64, end: u64) {
    let index = COUNT.load(Ordering::Relaxed);
    assert!(index < RANGES, "memory lies in more than {RANGES} ranges");
    let [start, end] = [start, end].map(|address| address / PAGE_SIZE as u64);
    USABLE[index].store(start << 32 | end, Ordering::Relaxed);
    COUNT.store(index + 1, Ordering::Relaxed);
}

/// Maps the memory above 4 GiB in pages of 2 MiB.
fn extend_direct_map() {
    const GIB: u64 = 1 << 30;
    let end = (Metal.frame_end() * PAGE_SIZE) as u64;
    for gib in MAPPED / GIB..end.div_ceil(GIB) {
        let bytes = HEAP[1].fetch_sub(PAGE_SIZE as u64, Ordering::Relaxed) - PAGE_SIZE as u64;
        let table = Frame::containing(HEAP[0].load(Ordering::Relaxed) + bytes);
        for index in 0..pte::ENTRIES {
            let address = gib * GIB + (index * pte::span(1)) as u64;
            let entry = address | pte::PRESENT | pte::WRITABLE | pte::HUGE | GLOBAL;
            // SAFETY: the frame has just been taken from the heap.
            unsafe { Metal.word(table, index) }.store(entry, Ordering::Relaxed);
        }
        let entry = table.address() | pte::PRESENT | pte::WRITABLE;
        // SAFETY: a table of the kernel's; only an unused entry is filled.
        let upper = unsafe { &direct_upper };
        upper[gib as usize].store(entry, Ordering::Release);
    }
}

/// The first word from `first` on that is not empty ([`Memory::find_word`]).
#[inline(never)]
fn find_from(
    words: &[AtomicU64; WORDS_PER_FRAME],
    first: usize,
    end: usize,
    mask: u64,
) -> Option<(usize, u64)> {
    // Words are read in pairs; the first of each pair is even.
    let even = first.next_multiple_of(2).min(end);
    if even > first {
        let value = words[first].load(Ordering::Relaxed);
        if value & mask != 0 {
            return Some((first, value));
        }
    }
    let full = even + empty_words(words, even, end, mask);
    let full = full + few_empty_words(words, full, end.min(full + MANY), mask);
    for (index, word) in words.get(full..end)?.iter().enumerate() {
        let value = word.load(Ordering::Relaxed);
        if value & mask != 0 {
            return Some((full + index, value));
        }
    }
    None
}

/// Words that are tested together: most of a table is empty.
const MANY: usize = 32;
/// Words that are tested together where some are not empty.
const FEW: usize = 8;

/// Defines how many words from `first` on, which is even, have no bit of `mask`: an even number,
/// perhaps fewer than there are before `end`. Words are tested in groups: the first pair, and those
/// at the `offsets` from it, in bytes.
macro_rules! empty_words {
    ($name:ident, $group:ident, $offsets:literal) => {
        #[inline(always)]
        fn $name(
            words: &[AtomicU64; WORDS_PER_FRAME],
            first: usize,
            end: usize,
            mask: u64,
        ) -> usize {
            let groups = end.saturating_sub(first) / $group;
            let start = words[first..].as_ptr();
            let mut at = start;
            // SAFETY: reads the groups, which lie in the frame and are aligned to 16 bytes. In
            // assembly, as others may write words meanwhile; each word is read whole.
            unsafe {
                asm!(
                    "jmp 3f",
                    "2:",
                    "movdqa {all}, [{at}]",
                    concat!(".irp offset, ", $offsets),
                    "por {all}, [{at} + \\offset]",
                    ".endr",
                    "pshufd {half}, {all}, 0xee",
                    "por {half}, {all}",
                    "movq {found}, {half}",
                    "test {found}, {mask}",
                    "jnz 4f",
                    "add {at}, {bytes}",
                    "3:",
                    "cmp {at}, {end}",
                    "jb 2b",
                    "4:",
                    at = inout(reg) at,
                    end = in(reg) start.wrapping_add(groups * $group),
                    mask = in(reg) mask,
                    bytes = const $group * 8,
                    found = out(reg) _,
                    all = out(xmm_reg) _,
                    half = out(xmm_reg) _,
                    options(nostack, readonly),
                );
                at.offset_from_unsigned(start)
            }
        }
    };
}

empty_words!(
    empty_words,
    MANY,
    "16, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240"
);
empty_words!(few_empty_words, FEW, "16, 32, 48");

// SAFETY: `boot.s` and `extend_direct_map` map all memory at `DIRECT_MAP`; `USABLE` has no memory
// that the kernel uses otherwise.
unsafe impl Memory for Metal {
    fn frame_end(&self) -> usize {
        let last = COUNT.load(Ordering::Relaxed).checked_sub(1);
        last.map_or(0, |last| {
            USABLE[last].load(Ordering::Relaxed) as u32 as usize
        })
    }

    fn usable(&self, each: &mut dyn FnMut(Range<u32>)) {
        for range in &USABLE[..COUNT.load(Ordering::Relaxed)] {
            let range = range.load(Ordering::Relaxed);
            each((range >> 32) as u32..range as u32);
        }
    }

    fn owned(&self) -> &AtomicBool {
        &OWNED
    }

    #[inline]
    fn direct_map(&self, frame: Frame) -> NonNull<u8> {
        let address = physical::<u8>(frame.address()).cast_mut();
        // SAFETY: the direct map does not begin at 0.
        unsafe { NonNull::new_unchecked(address) }
    }

    #[inline]
    unsafe fn word(&self, frame: Frame, index: usize) -> &AtomicU64 {
        assert!(index < WORDS_PER_FRAME, "no word {index} in a frame");
        // SAFETY: the word lies in the frame, which is mapped forever; shared words are atomic.
        unsafe {
            self.direct_map(frame)
                .cast::<AtomicU64>()
                .add(index)
                .as_ref()
        }
    }

    #[inline]
    unsafe fn find_word(
        &self,
        frame: Frame,
        first: usize,
        end: usize,
        mask: u64,
    ) -> Option<(usize, u64)> {
        // SAFETY: the words are the frame, which is mapped forever; shared words are atomic.
        let words = unsafe { self.direct_map(frame).cast::<[AtomicU64; _]>().as_ref() };
        // Entries often follow one another.
        let value = words.get(first)?.load(Ordering::Relaxed);
        if value & mask != 0 && first < end {
            Some((first, value))
        } else {
            find_from(words, first + 1, end, mask)
        }
    }

    #[inline]
    unsafe fn read_words(&self, frame: Frame, first: usize, words: &mut [[u8; 8]]) {
        assert!(first + words.len() <= WORDS_PER_FRAME, "beyond the frame");
        let from = self.direct_map(frame).as_ptr().wrapping_add(first * 8);
        // SAFETY: both have this many words.
        unsafe { copy_words(from, words.as_mut_ptr().cast(), words.len()) };
    }

    #[inline]
    unsafe fn write_words(&self, frame: Frame, first: usize, words: &[[u8; 8]]) {
        assert!(first + words.len() <= WORDS_PER_FRAME, "beyond the frame");
        let to = self.direct_map(frame).as_ptr().wrapping_add(first * 8);
        // SAFETY: both have this many words.
        unsafe { copy_words(words.as_ptr().cast(), to, words.len()) };
    }

    unsafe fn zero(&self, frame: Frame) {
        // SAFETY: the frame is the caller's to touch, and has this many words.
        unsafe {
            asm!("rep stosq", inout("rcx") WORDS_PER_FRAME => _,
                 inout("rdi") self.direct_map(frame).as_ptr() => _, in("rax") 0u64,
                 options(nostack, preserves_flags));
        }
    }

    unsafe fn copy(&self, from: Frame, to: Frame) {
        let [from, to] = [from, to].map(|frame| self.direct_map(frame).as_ptr());
        // SAFETY: both are the caller's to touch, and have this many words.
        unsafe { copy_words(from, to, WORDS_PER_FRAME) };
    }
}

/// Copies words by a string instruction, which is opaque to the compiler: other CPUs may access the
/// words of a frame meanwhile.
///
/// # Safety
/// `from` and `to` must be `count` words each, one of the two of a frame and thus aligned.
#[inline]
unsafe fn copy_words(from: *const u8, to: *mut u8, count: usize) {
    // SAFETY: so says the caller.
    unsafe {
        asm!("rep movsq", inout("rcx") count => _, inout("rsi") from => _, inout("rdi") to => _,
             options(nostack, preserves_flags));
    }
}
