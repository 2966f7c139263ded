//! Time: the time-stamp counter, which is the same on all CPUs, and the APIC's timer. Both are
//! measured against the PC's interval timer at the start.

use crate::cpu::Cpu;
use crate::frame::Frame;
use crate::{Metal, apic, sample};
use core::arch::x86_64::_rdtsc;
use core::sync::atomic::{AtomicU64, Ordering};
use machine::{Cpus, TaskName, Tasks};
use x86_64::instructions::port::Port;

/// Counts a second of the interval timer.
const PIT: u64 = 1_193_182;
/// The number of counts over which the clocks are measured: 20 ms.
const MEASURED: u64 = PIT / 50;
const SECOND: u64 = 1_000_000_000;

/// Nanoseconds per cycle, times 2^32. Written once, like the two statics below.
static PER_CYCLE: AtomicU64 = AtomicU64::new(0);
/// Ticks of the timer per nanosecond, times 2^32.
static TICKS: AtomicU64 = AtomicU64::new(0);
/// The first cycle.
static START: AtomicU64 = AtomicU64::new(0);

/// The three clocks at one moment.
struct Moment {
    cycles: u64,
    pit: u16,
    ticks: u32,
}

/// The time-stamp counter.
pub fn cycles() -> u64 {
    // SAFETY: all x86-64 processors have the counter.
    unsafe { _rdtsc() }
}

/// Measures the clocks.
pub(crate) fn begin() {
    // SAFETY: the interval timer's second channel moves nothing but the loudspeaker, which is off.
    unsafe {
        let mut gate = Port::<u8>::new(0x61);
        let value = gate.read();
        gate.write(value & !2 | 1);
        Port::<u8>::new(0x43).write(0xb0);
        Port::<u8>::new(0x42).write(0xff);
        Port::<u8>::new(0x42).write(0xff);
    }
    apic::set_timer(u32::MAX);
    let first = moment();
    let passed = |now: &Moment| u64::from(first.pit.wrapping_sub(now.pit));
    let mut last = moment();
    while passed(&last) < MEASURED {
        last = moment();
    }
    apic::set_timer(0);
    let nanoseconds = u128::from(passed(&last) * SECOND / PIT);
    let cycles = u128::from(last.cycles - first.cycles);
    let ticks = u128::from(first.ticks - last.ticks);
    PER_CYCLE.store(((nanoseconds << 32) / cycles) as u64, Ordering::Relaxed);
    TICKS.store(((ticks << 32) / nanoseconds) as u64, Ordering::Relaxed);
    START.store(last.cycles, Ordering::Relaxed);
}

/// The clocks, read as close together as possible: the best of several tries.
fn moment() -> Moment {
    let read = || {
        let cycles = cycles();
        // SAFETY: the ports are those of the timer that every PC has; the write holds the count,
        // whose halves are read.
        let pit = unsafe {
            Port::<u8>::new(0x43).write(0x80);
            let mut count = Port::<u8>::new(0x42);
            u16::from_le_bytes([count.read(), count.read()])
        };
        let ticks = apic::timer_rest();
        (self::cycles() - cycles, Moment { cycles, pit, ticks })
    };
    let best = (0..8).map(|_| read()).min_by_key(|(took, _)| *took);
    best.expect("some tries").1
}

fn scaled(value: u64, factor: &AtomicU64) -> u64 {
    ((u128::from(value) * u128::from(factor.load(Ordering::Relaxed))) >> 32) as u64
}

/// The nanoseconds of this many cycles.
pub fn nanoseconds(cycles: u64) -> u64 {
    scaled(cycles, &PER_CYCLE)
}

/// The nanoseconds since the start.
pub(crate) fn now() -> u64 {
    let start = START.load(Ordering::Relaxed);
    scaled(cycles().saturating_sub(start), &PER_CYCLE)
}

/// Serves the calling CPU's timer, which went off while it ran `frame`, and restarts it for what is
/// left. Returns true if the time of the scheduler, or of a task to wake, has come.
pub(crate) fn ring(frame: &Frame) -> bool {
    let cpu = Cpu::this();
    sample::ring(cpu, frame);
    let now = now();
    let mut has_come = false;
    for time in [&cpu.deadline, &cpu.wake_at] {
        if now >= time.get() {
            time.set(u64::MAX);
            has_come = true;
        }
    }
    arm(cpu);
    has_come
}

/// Parks the calling task, with a timeout at `time`. A CPU only records the last caller, so only
/// one task of the system may call this.
pub fn park_until(time: u64) {
    let pin = Metal::pin();
    let cpu = Cpu::this();
    // The handler only reads the time, so it is written last.
    let task = (time != u64::MAX).then(Metal::current_task);
    cpu.wakes.set(task);
    cpu.wake_at.set(time);
    arm(cpu);
    drop(pin);
    Metal::park();
}

/// The task that the calling CPU is to wake, if its time has come. Called at safe points.
pub(crate) fn due(cpu: &Cpu) -> Option<TaskName> {
    match cpu.wake_at.get() {
        u64::MAX => cpu.wakes.take(),
        _ => None,
    }
}

/// Starts the calling CPU's timer, for the scheduler.
pub(crate) fn set_timer(time: u64) {
    let cpu = Cpu::this();
    cpu.deadline.set(time);
    arm(cpu);
}

/// Starts the timer of `cpu`, the calling one, for the earliest of its purposes.
pub(crate) fn arm(cpu: &Cpu) {
    let time = cpu.deadline.get().min(cpu.wake_at.get());
    let time = time.min(cpu.sample_at.get());
    let ticks = match time {
        u64::MAX => 0,
        // At least 1, since 0 stops the timer, and at most what it can count.
        _ => scaled(time.saturating_sub(now()), &TICKS).clamp(1, u64::from(u32::MAX)),
    };
    apic::set_timer(ticks as u32);
}

/// Nanoseconds from 1970 to the machine's start, by the PC's clock of the day, in UTC.
pub fn start_of_time() -> u64 {
    static TIME: AtomicU64 = AtomicU64::new(0);
    let known = TIME.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let time = (seconds() * SECOND).saturating_sub(now());
    // If several CPUs ask at the same time, one decides.
    let first = TIME.compare_exchange(0, time, Ordering::Relaxed, Ordering::Relaxed);
    first.map_or_else(|earlier| earlier, |_| time)
}

/// The clock of the day, in seconds since 1970.
fn seconds() -> u64 {
    let read = |register: u8| {
        // SAFETY: reads a register of the clock; one CPU does at the start.
        let value = unsafe {
            Port::<u8>::new(0x70).write(register);
            Port::<u8>::new(0x71).read()
        };
        // Decimal digits.
        u64::from((value >> 4) * 10 + (value & 15))
    };
    while read(10) >= 80 {}
    let [second, minute, hour, day, month, year] = [0, 2, 4, 7, 8, 9].map(read);
    // Years begin in March here, so that the leap day comes last.
    let (year, month) = match month {
        1 | 2 => (year + 1999, month + 9),
        _ => (year + 2000, month - 3),
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    // Days from the 1st of March of year 0 to 1970.
    const EPOCH: u64 = 719_468;
    (days - EPOCH) * 86_400 + hour * 3_600 + minute * 60 + second
}
