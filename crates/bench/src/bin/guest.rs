//! The program that runs workloads inside a guest; see [`bench::inside`].

use std::process::ExitCode;

fn main() -> ExitCode {
    bench::inside::main()
}
