//! The error to expect of a simulated figure.

/// The accepted error of a prediction, as a part of the figure, and the reason.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// The kind of prediction.
    pub kind: &'static str,
    /// The least ratio of the simulated to the published figure.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Band {
    /// Nothing is predicted.
    pub const EXACT: Band = Band::new("no difference", 1.0, 1.0);
    /// A size was chosen for the figure.
    pub const FITTED: Band = Band::new("fitted, ±5 %", 0.95, 1.05);
    /// A saturated lock, built as its authors built it.
    pub const SATURATED: Band = Band::new("a saturated lock, ±35 %", 0.65, 1.35);
    /// Which variables share a line is not known.
    pub const LAYOUT: Band = Band::new("layout not known, up to 2×", 0.5, 2.0);
    /// The change when tasks come to a second socket.
    pub const SOCKETS: Band = Band::new("drop at a socket boundary, ±25 %", 0.75, 1.25);
    /// Tasks that share nothing, within a socket.
    pub const DISJOINT: Band = Band::new("disjoint work within a socket, ±10 %", 0.9, 1.1);
    /// The bandwidth of memory, which no micro-benchmark has measured.
    pub const BANDWIDTH: Band = Band::new("the bandwidth of memory, up to 2×", 0.5, 2.0);
    /// Where a curve stops rising.
    pub const KNEE: Band = Band::new("a knee, ×/÷ 1.5", 1.0 / 1.5, 1.5);

    const fn new(kind: &'static str, low: f64, high: f64) -> Self {
        Band { kind, low, high }
    }
}
