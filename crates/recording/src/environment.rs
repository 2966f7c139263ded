//! The computer and its settings while a program was recorded.

/// The computer and its settings while a program was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// The kernel's release.
    pub kernel: String,
    /// The number of CPUs that were online.
    pub cpus: u32,
    /// `always`, `madvise` or `never`.
    pub huge_pages: String,
    /// `vm.overcommit_memory`.
    pub overcommit: u32,
    /// `vm.max_map_count`.
    pub max_map_count: u64,
    /// Variables that set an allocator, such as `MALLOC_ARENA_MAX`.
    pub variables: Vec<(String, String)>,
}
