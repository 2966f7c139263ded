//! Names for addresses.

mod data;
mod kernel;
mod resolver;
mod user;

pub(crate) use data::variable;
pub(crate) use kernel::{missing, plain};
pub(crate) use resolver::Resolver;
pub(crate) use user::{module, unknown};

/// A stack with names, each part from the leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// The process's command.
    pub process: String,
    /// The thread's name, if it has one of its own.
    pub thread: Option<String>,
    pub kernel: Vec<String>,
    pub user: Vec<Function>,
}

impl Named {
    /// Returns true if the stack ran in an interrupt, on behalf of nobody.
    pub fn interrupted(&self) -> bool {
        const INTERRUPTS: [&str; 5] = [
            "asm_sysvec_",
            "asm_common_interrupt",
            "common_interrupt",
            "handle_softirqs",
            "__do_softirq",
        ];
        let is = |frame: &String| INTERRUPTS.iter().any(|prefix| frame.starts_with(prefix));
        self.kernel.iter().any(is)
    }
}

/// A function of a program or library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Function {
    pub name: String,
    /// The source file, where known. Inlined functions have names without a path: `lock` says
    /// little, `std/src/sync/mutex.rs` says which.
    pub source: String,
    /// The line in it, 0 if unknown.
    pub line: u32,
    /// True if it belongs to the runtime of programs: the C library, the loader, the kernel's page
    /// in every process.
    pub system: bool,
}
