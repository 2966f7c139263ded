//! The machine and the kernel in `/proc`.

use crate::abi::{Errno, RELEASE, VERSION};
use crate::system::system;
use alloc::format;
use alloc::string::String;
use core::arch::x86_64::{__cpuid, CpuidResult};
use core::fmt::Write;
use machine::{Clock, Topology};
use metal::Metal;

const SECOND: u64 = 1_000_000_000;

/// The CPUs, which are alike: as the calling one sees itself.
pub fn cpuinfo() -> Result<String, Errno> {
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
    let mut text = String::new();
    for cpu in 0..Metal.cpus().len() {
        writeln!(
            text,
            "processor\t: {cpu}\nvendor_id\t: {vendor}\ncpu family\t: {family}\n\
             model\t\t: {model}\nmodel name\t: {name}\nstepping\t: {stepping}\n"
        )
        .map_err(|_| Errno::NOMEM)?;
    }
    Ok(text)
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

/// The text that registers spell.
fn letters(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let letters = bytes.take_while(|&byte| byte != 0).map(char::from);
    String::from(letters.collect::<String>().trim())
}

/// When the machine started, and how many numbers processes and threads have had.
pub fn stat() -> Result<String, Errno> {
    let start = metal::start_of_time() / SECOND;
    let given = system().processes.given();
    Ok(format!("btime {start}\nprocesses {given}\n"))
}

/// Seconds since the start. How long CPUs were idle is not counted.
pub fn uptime() -> Result<String, Errno> {
    let hundredths = Metal::now() / (SECOND / 100);
    Ok(format!("{}.{:02}\n", hundredths / 100, hundredths % 100))
}

/// The text of `uname`.
pub fn version() -> Result<String, Errno> {
    Ok(format!("Linux version {RELEASE} {VERSION}\n"))
}

/// The file systems that can be mounted: no others.
pub fn filesystems() -> Result<String, Errno> {
    Ok(String::from("nodev\trootfs\nnodev\tproc\nnodev\tsysfs\n"))
}
