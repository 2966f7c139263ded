//! The machine and the kernel in `/proc`.

use crate::errno::Errno;
use crate::fs::live::Sheet;
use crate::process::{PROCESSES, Process};
use crate::version::{RELEASE, VERSION};
use alloc::string::String;
use alloc::sync::Arc;
use core::arch::x86_64::{__cpuid, CpuidResult};
use core::fmt::Write;
use machine::{Clock, Topology};
use metal::Metal;

const SECOND: u64 = 1_000_000_000;

/// The CPUs, which are all like the calling one.
pub fn cpuinfo(to: &mut Sheet) -> Result<(), Errno> {
    let vendor = __cpuid(0);
    let vendor = letters(&[vendor.ebx, vendor.edx, vendor.ecx]);
    let signature = __cpuid(1).eax;
    let base = signature >> 8 & 15;
    let family = if base == 15 {
        base + (signature >> 20 & 255)
    } else {
        base
    };
    let model = signature >> 4 & 15 | if base >= 6 { signature >> 12 & 0xf0 } else { 0 };
    let stepping = signature & 15;
    let name = brand();
    for cpu in 0..Metal.cpus().len() {
        writeln!(
            to,
            "processor\t: {cpu}\nvendor_id\t: {vendor}\ncpu family\t: {family}\n\
             model\t\t: {model}\nmodel name\t: {name}\nstepping\t: {stepping}\n"
        )?;
    }
    Ok(())
}

/// The processor's name for itself.
fn brand() -> String {
    const FIRST: u32 = 0x8000_0002;
    let words = |CpuidResult { eax, ebx, ecx, edx }| [eax, ebx, ecx, edx];
    if __cpuid(0x8000_0000).eax < FIRST + 2 {
        return String::new();
    }
    let parts = [FIRST, FIRST + 1, FIRST + 2].map(|leaf| words(__cpuid(leaf)));
    letters(parts.as_flattened())
}

/// The text in the bytes of registers.
fn letters(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let letters = bytes.take_while(|&byte| byte != 0).map(char::from);
    String::from(letters.collect::<String>().trim())
}

/// When the machine started, and how many processes and threads there have been.
pub fn stat(to: &mut Sheet) -> Result<(), Errno> {
    let start = metal::start_of_time() / SECOND;
    let given = PROCESSES.given();
    Ok(writeln!(to, "btime {start}\nprocesses {given}")?)
}

/// Seconds since the start, and those in which CPUs ran no process, summed over the CPUs.
pub fn uptime(to: &mut Sheet) -> Result<(), Errno> {
    let now = Metal::now();
    let used = |process: Arc<Process>| (process.used() + *process.family.used.lock()).time();
    let used: u64 = PROCESSES.all().map(used).sum();
    let idle = (now * Metal.cpus().len() as u64).saturating_sub(used);
    let [up, idle] = [now, idle].map(|time| time / (SECOND / 100));
    let [whole_up, whole_idle] = [up, idle].map(|time| time / 100);
    Ok(writeln!(
        to,
        "{whole_up}.{:02} {whole_idle}.{:02}",
        up % 100,
        idle % 100
    )?)
}

/// The load, which is not measured, so 0; the number of processes that do not sleep, and of all;
/// the last number given.
pub fn loadavg(to: &mut Sheet) -> Result<(), Errno> {
    let is_ready = |process: &Arc<Process>| {
        let threads = process.threads.lock();
        threads.iter().any(|thread| !thread.is_asleep())
    };
    let processes = &*PROCESSES;
    let ready = processes.all().filter(is_ready).count();
    let (count, last) = (processes.count(), processes.given());
    Ok(writeln!(to, "0.00 0.00 0.00 {ready}/{count} {last}")?)
}

/// The text of `uname`.
pub fn version(to: &mut Sheet) -> Result<(), Errno> {
    Ok(writeln!(to, "Linux version {RELEASE} {VERSION}")?)
}

/// The file systems that can be mounted: no others.
pub fn filesystems(to: &mut Sheet) -> Result<(), Errno> {
    to.add(b"nodev\trootfs\nnodev\tproc\nnodev\tsysfs\n")
}
