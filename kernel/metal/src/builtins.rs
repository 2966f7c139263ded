//! Functions that the compiler calls by name, and that no library supplies here. They work by
//! words, since a byte costs as much.

use core::arch::asm;

/// Copies `bytes` bytes; returns `to` (C).
///
/// # Safety
/// Both addresses are valid for `bytes` bytes, and `to` is not within the bytes after `from`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    // SAFETY: the caller passes addresses of this many bytes.
    unsafe {
        asm!("rep movsq", "mov ecx, {rest:e}", "rep movsb", rest = in(reg) bytes % 8,
             inout("rcx") bytes / 8 => _, inout("rdi") to => _, inout("rsi") from => _,
             options(nostack, preserves_flags));
    }
    to
}

/// Copies `bytes` bytes, which may overlap; returns `to` (C).
///
/// # Safety
/// Both addresses are valid for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    if to.addr().wrapping_sub(from.addr()) >= bytes {
        // SAFETY: the caller passes addresses of this many bytes; copying upwards overwrites
        // nothing that is still to be read.
        return unsafe { memcpy(to, from, bytes) };
    }
    // SAFETY: the caller passes addresses of this many bytes, at least one.
    unsafe {
        asm!("std", "rep movsb", "cld", inout("rcx") bytes => _,
             inout("rdi") to.wrapping_add(bytes).wrapping_sub(1) => _,
             inout("rsi") from.wrapping_add(bytes).wrapping_sub(1) => _, options(nostack));
    }
    to
}

/// Fills `bytes` bytes with `value`; returns `to` (C).
///
/// # Safety
/// The address is valid for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memset(to: *mut u8, value: i32, bytes: usize) -> *mut u8 {
    // SAFETY: the caller passes an address of this many bytes.
    unsafe {
        asm!("rep stosq", "mov ecx, {rest:e}", "rep stosb", rest = in(reg) bytes % 8,
             inout("rcx") bytes / 8 => _, inout("rdi") to => _,
             in("rax") u64::from(value as u8) * 0x0101_0101_0101_0101,
             options(nostack, preserves_flags));
    }
    to
}

/// Compares `bytes` bytes: 0 if they are equal, otherwise -1 or 1 by the first difference (C).
///
/// # Safety
/// Both addresses are valid for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, bytes: usize) -> i32 {
    let (less, more): (u8, u8);
    // In assembly: a compiler makes a loop that compares bytes a call of this function. SAFETY: the
    // caller passes addresses of this many bytes.
    unsafe {
        asm!("cmp cl, cl", "repe cmpsb", "setb {less}", "seta {more}", less = out(reg_byte) less,
             more = out(reg_byte) more, inout("rcx") bytes => _, inout("rdi") other => _,
             inout("rsi") one => _, options(nostack, readonly));
    }
    i32::from(more) - i32::from(less)
}

/// Compares `bytes` bytes: 0 if they are equal (C).
///
/// # Safety
/// Both addresses are valid for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, bytes: usize) -> i32 {
    // SAFETY: the caller passes addresses of this many bytes.
    unsafe { memcmp(one, other, bytes) }
}

/// Named by the libraries, which were compiled for unwinding; a panic here ends the machine.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Named by the libraries, which were compiled for unwinding; never called.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    panic!("nothing unwinds here")
}
