//! `Debug` of what tasks share: its name.

use crate::{Futexes, Own, Pipe};
use machine::{Machine, opaque_debug};

opaque_debug! {
    [M: Machine] Futexes<M>;
    [M: Machine] Own<M>;
    [M: Machine] Pipe<M>;
}
