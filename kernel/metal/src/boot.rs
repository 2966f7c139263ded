//! The loader's information, and the way to `kernel_main`.

use crate::memory::{self, physical};
use crate::report::{CONSOLE, REPORT};
use crate::{clock, start};
use core::ops::Range;
use core::slice;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

core::arch::global_asm!(include_str!("boot.s"), options(att_syntax));

/// PVH's `hvm_start_info`, of version 1.
#[repr(C)]
struct StartInfo {
    magic: u32,
    version: u32,
    flags: u32,
    modules: u32,
    module_list: u64,
    command_line: u64,
    rsdp: u64,
    memory_map: u64,
    memory_ranges: u32,
    reserved: u32,
}

#[repr(C)]
struct Module {
    address: u64,
    bytes: u64,
    command_line: u64,
    reserved: u64,
}

/// A range of physical addresses.
#[repr(C)]
struct MemoryRange {
    address: u64,
    bytes: u64,
    kind: u32,
    reserved: u32,
}

const MAGIC: u32 = 0x336e_c578;
/// The kind of a range that is RAM.
const RAM: u32 = 1;
/// Most bytes of a command line.
const LINE: usize = 4096;

/// The command line: its bytes are copied, because they are in memory that the other CPUs start in.
static LINE_BYTES: [AtomicU64; LINE / 8] = [const { AtomicU64::new(0) }; LINE / 8];
static LINE_LENGTH: AtomicUsize = AtomicUsize::new(0);
/// The range of the initial file system.
static INITRD: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

unsafe extern "Rust" {
    /// The kernel's first function, called on the first CPU.
    safe fn kernel_main() -> !;
}

/// The command line.
pub fn command_line() -> &'static str {
    let length = LINE_LENGTH.load(Ordering::Relaxed);
    // SAFETY: written once, by `keep_line`, before anything else runs.
    let bytes = unsafe { slice::from_raw_parts(LINE_BYTES.as_ptr().cast::<u8>(), length) };
    str::from_utf8(bytes).unwrap_or_default()
}

/// The initial file system, as the loader has placed it; empty if there is none.
pub fn initrd() -> &'static [u8] {
    let [address, bytes] = [0, 1].map(|index| INITRD[index].load(Ordering::Relaxed));
    // SAFETY: the loader's module, whose frames are not handed over.
    unsafe { slice::from_raw_parts(physical(address), bytes as usize) }
}

/// Called by `boot.s` on the first CPU, with the physical address of the loader's information.
#[unsafe(no_mangle)]
extern "C" fn metal_boot(info: u64) -> ! {
    CONSOLE.begin();
    REPORT.begin();
    start::first_cpu();
    // SAFETY: the loader's structure, in the first 4 GiB, which are mapped.
    let info = unsafe { &*physical::<StartInfo>(info) };
    assert!(
        info.magic == MAGIC && info.version >= 1,
        "not started by PVH"
    );
    keep_line(info.command_line);
    let modules = array::<Module>(info.module_list, info.modules);
    let initrd = modules.first().map(|it| it.address..it.address + it.bytes);
    let initrd: Range<u64> = initrd.unwrap_or(0..0);
    INITRD[0].store(initrd.start, Ordering::Relaxed);
    INITRD[1].store(initrd.end - initrd.start, Ordering::Relaxed);
    let ranges = array::<MemoryRange>(info.memory_map, info.memory_ranges).iter();
    let ram = ranges.filter(|range| range.kind == RAM);
    memory::begin(
        ram.map(|range| range.address..range.address + range.bytes),
        initrd,
    );
    start::find_cpus(info.rsdp);
    clock::begin();
    kernel_main()
}

fn keep_line(address: u64) {
    if address == 0 {
        return;
    }
    // SAFETY: the loader's text, in mapped memory.
    let place: &[u8] = unsafe { slice::from_raw_parts(physical(address), LINE) };
    let length = place.iter().position(|&byte| byte == 0).unwrap_or(LINE);
    LINE_LENGTH.store(length, Ordering::Relaxed);
    for (word, bytes) in LINE_BYTES.iter().zip(place[..length].chunks(8)) {
        let mut value = [0; 8];
        value[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_ne_bytes(value), Ordering::Relaxed);
    }
}

fn array<T>(address: u64, count: u32) -> &'static [T] {
    match count {
        0 => &[],
        // SAFETY: the loader's array of `count` elements, in mapped memory.
        _ => unsafe { slice::from_raw_parts(physical(address), count as usize) },
    }
}
