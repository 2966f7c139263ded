//! The CPUs, as ACPI's table of interrupt controllers (MADT) lists them.

use crate::memory::physical;
use core::slice;

/// Bytes of a table's header.
const HEADER: usize = 36;
/// The kind of the MADT's entry for a CPU's local APIC.
const LOCAL_APIC: u8 = 0;
/// The flag of an entry for a CPU that exists.
const ENABLED: u8 = 1;

/// Calls `each` with the number of each CPU's local APIC. `rsdp` is the physical address of ACPI's
/// root pointer.
pub(crate) fn cpus(rsdp: u64, mut each: impl FnMut(u8)) {
    let Some(madt) = find(rsdp, b"APIC") else {
        return;
    };
    // The local APIC's address and flags precede the entries.
    let mut rest = madt.get(HEADER + 8..).unwrap_or_default();
    while let [_, bytes, ..] = *rest
        && bytes >= 2
    {
        let (entry, others) = rest.split_at(usize::from(bytes).min(rest.len()));
        if let [LOCAL_APIC, _, _, apic, flags, ..] = *entry
            && flags & ENABLED != 0
        {
            each(apic);
        }
        rest = others;
    }
}

/// The table with this signature.
fn find(rsdp: u64, signature: &[u8; 4]) -> Option<&'static [u8]> {
    let pointer = bytes(rsdp, HEADER);
    if &pointer[..8] != b"RSD PTR " {
        return None;
    }
    // From revision 2 on there is also a table with 64-bit addresses.
    let extended = pointer[15] >= 2;
    let (root, width) = if extended {
        (number(&pointer[24..32]), 8)
    } else {
        (number(&pointer[16..20]), 4)
    };
    let addresses = table(root).get(HEADER..)?.chunks_exact(width);
    let mut tables = addresses.map(|address| table(number(address)));
    tables.find(|table| &table[..4] == signature)
}

fn table(address: u64) -> &'static [u8] {
    let length = number(&bytes(address, HEADER)[4..8]);
    bytes(address, (length as usize).max(HEADER))
}

fn bytes(address: u64, length: usize) -> &'static [u8] {
    // SAFETY: the firmware's tables lie in the first 4 GiB, which are mapped, and are never
    // written.
    unsafe { slice::from_raw_parts(physical(address), length) }
}

/// A little-endian number.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |number, &byte| number << 8 | u64::from(byte))
}
