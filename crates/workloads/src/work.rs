//! Computing.

use core::hint::black_box;

/// Computes for `nanoseconds` at 3 GHz: steps that wait for each other, of a shift, an exclusive or, and a
/// multiplication (3 cycles on all usual cores).
pub fn work(nanoseconds: u64) {
    const CYCLES: u64 = 5;
    let steps = nanoseconds.saturating_mul(3) / CYCLES;
    let number = (0..steps).fold(black_box(1_u64), |number, _| {
        (number ^ (number >> 29)).wrapping_mul(0x5851_f42d_4c95_7f2d)
    });
    black_box(number);
}
