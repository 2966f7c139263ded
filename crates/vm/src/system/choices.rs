//! Choices of a system that need no code of its own.

/// The tables of a child for 2 MiB of its parent's private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkTables {
    /// Entries of its own, for each page.
    Copied,
    /// The parent's table, until one of them changes an entry of it, where enough pages of the
    /// 2 MiB are in memory.
    Shared {
        /// The least number of such pages; with fewer, copying is cheaper.
        from: usize,
    },
}

impl ForkTables {
    /// The best choice as a rule, and the default.
    pub const BEST: Self = ForkTables::Shared { from: 32 };
}

impl Default for ForkTables {
    fn default() -> Self {
        Self::BEST
    }
}

/// How the VM finds the mappings of an object's page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ObjectPages {
    /// By the object's attachments, which say where the page may be mapped. A mapping is an entry
    /// and nothing else.
    #[default]
    Attached,
    /// By PV entries, as those of private pages; each mapping has a reference to the page.
    Listed,
}

/// The pools of free frames that are in no CPU's cache, each under a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FramePools {
    /// One for eight CPUs.
    #[default]
    Near,
    /// One for each NUMA node. So CPUs of a node are given frames of the same 2 MiB.
    Node,
    /// One for all.
    One,
}
