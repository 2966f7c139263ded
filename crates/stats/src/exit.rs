//! The command's exit codes.

/// The outcome of a command, as its exit code.
///
/// `Success` is zero so that scripts may write `scalevm compare … || …`; a regression has the code
/// of a failing test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The same, or better.
    Success = 0,
    /// Measurably worse.
    Regressed = 1,
    /// The arguments or an input file are wrong.
    BadInput = 2,
    /// The runs decide nothing; more are needed.
    Inconclusive = 3,
    /// The program or kernel under test failed.
    TargetFailed = 4,
}

impl Exit {
    /// The number for the operating system.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn codes_are_the_documented_ones() {
        let all = [
            Exit::Success,
            Exit::Regressed,
            Exit::BadInput,
            Exit::Inconclusive,
            Exit::TargetFailed,
        ];
        assert_eq!(all.map(Exit::code), [0, 1, 2, 3, 4]);
    }
}
