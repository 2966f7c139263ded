//! A small kernel around scalevm's virtual-memory subsystem and scheduler.
#![no_std]
#![no_main]

extern crate alloc;

mod abi;
mod affinity;
mod caller;
mod conformance;
mod disturbed;
mod errno;
mod event_count;
mod fs;
mod heap;
mod messages;
mod numbered;
mod proc;
mod process;
mod profile;
mod program;
mod segments;
mod semaphores;
mod single;
mod stale;
mod swap;
mod system;
mod terminal;
mod timers;
mod users;
mod version;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use baselines::Preset;
use core::panic::PanicInfo;
use disturbed::Disturbed;
use fs::{Inode, Waits};
use ipc::Futexes;
use machine::Topology;
use metal::Metal;
use numbered::Numbered;
use process::{CurrentTask, Hooks, Table};
use sched::Sched;
use system::{Lock, SYSTEM, System, Vm};
use terminal::Terminal;
use timers::Timers;
use vm::Overcommit;

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
    let preset = preset.map_or(Ok(Preset::SCALEVM), str::parse);
    let preset = preset.unwrap_or_else(|unknown| panic!("vm=: {unknown}"));
    begin(machine, preset, has("strict"));
    metal::schedule(&SYSTEM.scheduler, Box::new(first))
}

/// Creates the single objects, from the lowest layer up.
fn begin(machine: Metal, preset: Preset, is_strict: bool) {
    let mut options = preset.options();
    options.overcommit = Overcommit::Heuristic;
    options.swap_space = swap::space();
    options.out_of_memory = Some(Box::new(process::relieve));
    let kernel = Disturbed {
        kernel: preset.kernel(),
        caller: &CurrentTask,
    };
    SYSTEM.set(System {
        vm: Vm::with_options(machine, options).expect("memory for the VM"),
        futexes: Futexes::new(&kernel, machine.cpus()),
        scheduler: Sched::new(machine.cpus()),
        kernel,
        is_strict,
    });
    profile::PROFILE.set(Lock::new(()));
    fs::ROOT.set(Inode::root());
    fs::RENAMES.set(Lock::new(()));
    fs::ABSTRACT.set(Lock::new(BTreeMap::new()));
    fs::STREAMS.set(Lock::default());
    fs::WATCHES.set(fs::Watches::default());
    fs::ARRIVALS.set(fs::Arrivals::new());
    fs::DROPPED.set(Lock::default());
    fs::DATAGRAMS.set(Lock::default());
    fs::WAITS.set(Lock::new(Waits::default()));
    process::PROCESSES.set(Table::new());
    timers::TIMERS.set(Timers::new());
    process::READY.set(process::ready::Ready::new().expect("memory for a set"));
    process::HOOKS.set(Hooks {
        memory_given_up: segments::settle,
        ending: semaphores::undo,
        ended: terminal::leave,
    });
    terminal::TERMINAL.set(Terminal::new());
    fs::TTY.set(&*terminal::TERMINAL);
    segments::SEGMENTS.set(Lock::new(Numbered::new(segments::MOST)));
    semaphores::SEMAPHORES.set(Lock::new(Numbered::new(semaphores::MOST)));
    messages::MESSAGES.set(Lock::new(Numbered::new(messages::MOST)));
    metal::take_frames_from(process::stack_frame);
}

/// The first task: it unpacks the initial file system and starts the first process.
fn first() {
    fs::unpack(metal::initrd())
        .unwrap_or_else(|errno| panic!("the initial file system: {errno:?}"));
    swap::begin();
    timers::begin();
    process::ready::begin();
    proc::mount().unwrap_or_else(|errno| panic!("the file systems: {errno:?}"));
    let init = process::first().unwrap_or_else(|errno| panic!("/init: {errno:?}"));
    let place = process::reserve().unwrap_or_else(|errno| panic!("/init: {errno:?}"));
    init.start(place, abi::call);
}

#[panic_handler]
fn panicked(info: &PanicInfo) -> ! {
    metal::report::panicked(info)
}
