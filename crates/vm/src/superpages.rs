//! Where superpages are wanted.

use crate::tree::Flags;

/// Which private anonymous memory is mapped by superpages of 2 MiB where it can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Superpages {
    /// None.
    Never,
    /// What has [`Flags::HUGE`].
    #[default]
    Advised,
    /// All that does not have [`Flags::NO_HUGE`].
    Always,
}

impl Superpages {
    /// Whether a mapping with `flags` wants them.
    #[inline]
    pub(crate) fn wanted(self, flags: Flags) -> bool {
        match self {
            Superpages::Never => false,
            Superpages::Advised => flags.has(Flags::HUGE),
            Superpages::Always => !flags.has(Flags::NO_HUGE),
        }
    }
}
