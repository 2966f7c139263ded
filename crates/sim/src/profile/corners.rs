//! The four corners of a headline comparison. A *corner* is one combination of extreme values for
//! unpublished properties of a CPU; such values move a contended prediction by 2–4×.

use super::{Arbitration, MachineProfile};

/// Request, snoop and data: most of the time for the data, or about equal parts.
const LEGS: [[f64; 3]; 2] = [[0.20, 0.30, 0.50], [0.35, 0.35, 0.30]];

/// How often a request may be passed over, if the profile does not say.
const BYPASSES: u32 = 8;

impl MachineProfile {
    /// This machine with two divisions of a transfer × two arbitrations, first-come first. A
    /// prediction is the range over the four.
    pub fn corners(&self) -> [MachineProfile; 4] {
        let nearest = match self.transfer.arbitration {
            Arbitration::FirstCome => Arbitration::Nearest { bypasses: BYPASSES },
            nearest => nearest,
        };
        let corner = |legs, arbitration| self.corner(legs, arbitration);
        [
            corner(LEGS[0], Arbitration::FirstCome),
            corner(LEGS[1], Arbitration::FirstCome),
            corner(LEGS[0], nearest),
            corner(LEGS[1], nearest),
        ]
    }

    fn corner(&self, legs: [f64; 3], arbitration: Arbitration) -> MachineProfile {
        let mut corner = self.clone();
        corner.transfer.legs = legs;
        corner.transfer.arbitration = arbitration;
        let order = match arbitration {
            Arbitration::FirstCome => "first-come",
            Arbitration::Nearest { .. } => "nearest",
        };
        let percent = legs.map(|leg| format!("{:.0}", 100.0 * leg)).join("/");
        corner.name = format!("{} ({percent}, {order})", self.name);
        for key in ["transfer.legs", "transfer.arbitration"] {
            let source = "assumed: an extreme of the plausible values".to_owned();
            corner.sources.insert(key.to_owned(), source);
        }
        corner
    }
}
