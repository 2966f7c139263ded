//! A small kernel around scalevm's virtual-memory subsystem and scheduler.
#![no_std]
#![no_main]

extern crate alloc;

mod abi;
mod conformance;
mod errno;
mod event_count;
mod fs;
mod heap;
mod messages;
mod numbered;
mod process;
mod profile;
mod program;
mod segments;
mod semaphores;
mod stale;
mod swap;
mod system;
mod user;
mod version;

use alloc::boxed::Box;
use baselines::selected::Preset;
use core::panic::PanicInfo;

/// The kernel's first function, on the first CPU, called by the machine.
#[unsafe(no_mangle)]
fn kernel_main() -> ! {
    heap::begin();
    let machine = metal::start_cpus();
    let words = || metal::command_line().split_whitespace();
    let has = |wanted| words().any(|word| word == wanted);
    if has("conformance") {
        conformance::run(machine);
    }
    if has("plant=no-shootdown") {
        metal::forget_others();
    }
    if has("plant=late-flush") {
        metal::flush_late();
    }
    if has("alan-cox") {
        stale::run(machine, has("plant=no-wait"));
    }
    let preset = words().find_map(|word| word.strip_prefix("vm="));
    let preset = preset.map_or(Ok(Preset::Scalevm), str::parse);
    let preset = preset.unwrap_or_else(|unknown| panic!("vm=: {unknown}"));
    let system = system::begin(machine, preset, has("strict"));
    metal::schedule(&system.scheduler, Box::new(first))
}

/// The first task: it unpacks the initial file system and starts the first process.
fn first() {
    fs::unpack(metal::initrd())
        .unwrap_or_else(|errno| panic!("the initial file system: {errno:?}"));
    swap::begin();
    process::begin_timers();
    fs::mount().unwrap_or_else(|errno| panic!("the file systems: {errno:?}"));
    let init = process::first().unwrap_or_else(|errno| panic!("/init: {errno:?}"));
    let place = process::reserve().unwrap_or_else(|errno| panic!("/init: {errno:?}"));
    init.start(place);
}

#[panic_handler]
fn panicked(info: &PanicInfo) -> ! {
    metal::report::panicked(info)
}
