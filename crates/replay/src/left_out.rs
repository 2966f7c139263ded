//! What a replay leaves out.

use std::fmt::{self, Display, Formatter};

/// The number of recorded calls, faults, and holds of memory by others, and of those that a replay
/// leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    pub calls: u64,
    pub of_calls: u64,
    pub faults: u64,
    pub of_faults: u64,
    pub holds: u64,
    pub of_holds: u64,
}

impl Display for LeftOut {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let share = |out: u64, of: u64| 100.0 * (1.0 - out as f64 / (of.max(1)) as f64);
        write!(
            f,
            "{:.1} % of {} calls and {:.1} % of {} faults",
            share(self.calls, self.of_calls),
            self.of_calls,
            share(self.faults, self.of_faults),
            self.of_faults
        )?;
        if self.of_holds > 0 {
            let share = share(self.holds, self.of_holds);
            write!(f, ", and {share:.1} % of {} holds by others", self.of_holds)?;
        }
        f.write_str(" are replayed")
    }
}
