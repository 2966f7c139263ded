//! Small sets of named flags.

use std::fmt;
use std::marker::PhantomData;

/// A kind of flag; at most eight flags.
pub trait Flag: Copy + PartialEq + 'static {
    /// All flags, with their names in sequences.
    const ALL: &'static [(Self, &'static str)];
}

/// A set of flags of one kind.
#[derive(PartialEq, Eq)]
pub struct Flags<F>(u8, PhantomData<F>);

impl<F: Flag> Flags<F> {
    /// No flag.
    pub const NONE: Self = Flags(0, PhantomData);

    /// The set plus `flag`.
    #[must_use]
    pub fn with(self, flag: F) -> Self {
        Flags(self.0 | Self::bit(flag), PhantomData)
    }

    /// The set minus `flag`.
    #[must_use]
    pub fn without(self, flag: F) -> Self {
        Flags(self.0 & !Self::bit(flag), PhantomData)
    }

    /// Returns true if the set contains `flag`.
    pub fn has(self, flag: F) -> bool {
        self.0 & Self::bit(flag) != 0
    }

    /// The flags of the set.
    pub fn iter(self) -> impl Iterator<Item = F> {
        let all = F::ALL.iter().map(|&(flag, _)| flag);
        all.filter(move |&flag| self.has(flag))
    }

    /// The flag with this name.
    pub fn named(name: &str) -> Option<F> {
        let found = F::ALL.iter().find(|(_, known)| *known == name);
        found.map(|&(flag, _)| flag)
    }

    fn bit(flag: F) -> u8 {
        let index = F::ALL.iter().position(|&(known, _)| known == flag);
        1 << index.expect("ALL contains every flag")
    }
}

impl<F: Flag> FromIterator<F> for Flags<F> {
    fn from_iter<I: IntoIterator<Item = F>>(flags: I) -> Self {
        flags.into_iter().fold(Self::NONE, Self::with)
    }
}

impl<F> Clone for Flags<F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for Flags<F> {}

impl<F: Flag> fmt::Debug for Flags<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self} }}")
    }
}

/// Each name, preceded by a space.
impl<F: Flag> fmt::Display for Flags<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let here = F::ALL.iter().filter(|(flag, _)| self.has(*flag));
        here.into_iter()
            .try_for_each(|(_, name)| write!(f, " {name}"))
    }
}
