//! How tests run the command, where they keep their files, and where the repository's are.
#![allow(dead_code, reason = "each test file uses a part")]

pub mod command;
pub mod group;
pub mod place;
pub mod sample;
pub mod scratch;
pub mod server;
pub mod terminal;
pub mod tree;

/// Returns true if the kernel shows its waits here; a test that needs them says so if not.
pub fn sees_locks() -> bool {
    let sees = perf::support::everything();
    if !sees {
        eprintln!("skipped: waits are not to be seen here");
    }
    sees
}
