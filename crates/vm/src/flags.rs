//! The flags of a mapping, in a word, and the policy for superpages.

use crate::prot::Prot;
use core::ops::BitOr;

/// The rights of a mapping and its requested properties. 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags(u32);

impl Flags {
    /// No flags, and no rights.
    pub const NONE: Flags = Flags(0);
    /// Stores reach all that map the object.
    pub const SHARED: Flags = Flags(1 << 3);
    /// Swap space is reserved for its pages.
    pub const CHARGED: Flags = Flags(1 << 4);
    /// It is never charged (`MAP_NORESERVE`). Ignored under [`crate::Overcommit::Never`].
    pub const NO_RESERVE: Flags = Flags(1 << 5);
    /// It may not become writable: a shared mapping of an object that may only be read.
    pub const READ_ONLY: Flags = Flags(1 << 6);
    /// Its pages stay in memory.
    pub const LOCKED: Flags = Flags(1 << 7);
    /// With [`Flags::LOCKED`]: pages come when they are used, not at once.
    pub const ON_FAULT: Flags = Flags(1 << 8);
    /// It grows towards lower addresses when they are used: a stack.
    pub const GROWS_DOWN: Flags = Flags(1 << 9);
    /// A child of fork does not get it.
    pub const DONT_FORK: Flags = Flags(1 << 10);
    /// A child of fork finds zeroes.
    pub const WIPE_ON_FORK: Flags = Flags(1 << 11);
    /// Pages are used in no order: nothing is read ahead.
    pub const RANDOM: Flags = Flags(1 << 12);
    /// Pages are used in their order, once.
    pub const SEQUENTIAL: Flags = Flags(1 << 13);
    /// The mapping should use superpages.
    pub const HUGE: Flags = Flags(1 << 14);
    /// The mapping should not use superpages.
    pub const NO_HUGE: Flags = Flags(1 << 15);
    /// Dumps of a task's memory leave it out.
    pub const DONT_DUMP: Flags = Flags(1 << 16);

    /// The flags that a request may name ([`crate::Request::with`]). Its rights and
    /// [`Flags::SHARED`] it says in other ways; [`Flags::CHARGED`] is the VM's own, and
    /// [`Flags::WIPE_ON_FORK`] comes with advice.
    pub(crate) const REQUESTED: Flags = Flags(
        Self::NO_RESERVE.0
            | Self::READ_ONLY.0
            | Self::LOCKED.0
            | Self::ON_FAULT.0
            | Self::GROWS_DOWN.0
            | Self::DONT_FORK.0
            | Self::RANDOM.0
            | Self::SEQUENTIAL.0
            | Self::HUGE.0
            | Self::NO_HUGE.0
            | Self::DONT_DUMP.0,
    );

    const PROT: u32 = 0b111;

    /// A mapping with these rights.
    pub const fn new(prot: Prot) -> Self {
        Flags(prot.to_byte() as u32)
    }

    /// The rights of tasks.
    pub const fn prot(self) -> Prot {
        Prot::from_byte((self.0 & Self::PROT) as u8)
    }

    /// These flags with other rights.
    pub(crate) const fn with_prot(self, prot: Prot) -> Self {
        Flags(self.0 & !Self::PROT | prot.to_byte() as u32)
    }

    /// Returns true if all of `flags` are set.
    pub const fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These flags without `flags`.
    pub const fn without(self, flags: Flags) -> Self {
        Flags(self.0 & !flags.0)
    }

    /// Those of these flags that are among `flags`.
    pub(crate) const fn only(self, flags: Flags) -> Self {
        Flags(self.0 & flags.0)
    }

    /// These flags and `flags`.
    pub const fn with(self, flags: Flags) -> Self {
        Flags(self.0 | flags.0)
    }

    /// These flags, and `flags` if `wanted`.
    pub const fn with_if(self, wanted: bool, flags: Flags) -> Self {
        if wanted { self.with(flags) } else { self }
    }
}

impl BitOr for Flags {
    type Output = Flags;

    fn bitor(self, other: Flags) -> Flags {
        self.with(other)
    }
}

/// The private anonymous memory that is mapped by superpages of 2 MiB where possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Superpages {
    /// None.
    Never,
    /// Mappings with [`Flags::HUGE`].
    #[default]
    Advised,
    /// All mappings without [`Flags::NO_HUGE`].
    Always,
}

impl Superpages {
    /// Returns true if a mapping with `flags` gets superpages.
    #[inline]
    pub(crate) fn wanted(self, flags: Flags) -> bool {
        match self {
            Superpages::Never => false,
            Superpages::Advised => flags.has(Flags::HUGE),
            Superpages::Always => !flags.has(Flags::NO_HUGE),
        }
    }
}
