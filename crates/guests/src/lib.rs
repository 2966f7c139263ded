//! The host's side of scalevm's kernel.
//!
//! It builds the kernel ([`kernel`]), packs the files that a guest begins with ([`Files`]), boots
//! the kernel or Linux in QEMU ([`Machine`]), carries the console, and says how the guest has ended
//! ([`Ended`]). The same files and the same programs run on both kernels, so that the output of a
//! program, and the cost of an operation ([`measure`]), can be compared.
//!
//! ```no_run
//! use guests::{Files, Guest, Machine, Program, boot, kernel};
//!
//! let program = Program::new("echo", ["echo", "hello"]);
//! let files = Files::with_busybox()?;
//! let guest = Guest::Ours { kernel: kernel::build()?, words: Vec::new() };
//! let (ended, text) = boot::captured(&guest, &Machine::default(), &files, &program, &|| false)?;
//! # Ok::<(), guests::Error>(())
//! ```

mod backtrace;
pub mod boot;
pub mod cargo;
mod compiler;
mod ended;
mod error;
mod files;
pub mod kernel;
mod machine;
pub mod measure;
mod program;
mod qemu;
mod terminal;
mod tool;

pub use backtrace::{Frame, functions};
pub use compiler::{Library, compile, source};
pub use ended::{Ended, Panic};
pub use error::Error;
pub use files::Files;
pub use kernel::Guest;
pub use machine::Machine;
pub use program::{Program, SEPARATOR};
