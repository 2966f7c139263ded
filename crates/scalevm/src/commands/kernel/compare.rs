//! `scalevm kernel compare`: the cost of operations on Linux and on scalevm's kernel.

use super::guest;
use crate::cli::KernelCompareArgs;
use crate::output::progress::Progress;
use crate::output::{format, kernel};
use bench::{Failure, interrupt};
use guests::measure::{CPUS, Programs};
use guests::{Guest, source};
use std::path::PathBuf;

/// Measures both, and prints them side by side.
pub fn run(args: &KernelCompareArgs) -> Result<u8, Failure> {
    format::choose(args.format.format);
    let guests = [
        ("linux", guest(Some(linux(args)?), None, false)?),
        ("scalevm", guest(None, args.vm, false)?),
    ];
    let programs = Programs::build()?;
    let steps = if args.exact { 1 } else { 1 + CPUS.len() };
    let progress = Progress::new((guests.len() * steps) as u64, "guests");
    let mut sides = Vec::new();
    for (name, guest) in &guests {
        sides.push(measured(name, guest, &programs, args.exact, &progress)?);
        interrupt::check()?;
    }
    progress.finish();
    if args.json {
        kernel::print_json(&sides)
    } else {
        kernel::print(&sides)
    }
    Ok(super::super::finished())
}

fn measured(
    name: &'static str,
    guest: &Guest,
    programs: &Programs,
    exact: bool,
    progress: &Progress,
) -> Result<kernel::Side, Failure> {
    let stop = || interrupt::pending().is_some();
    progress.point(name);
    let costs = programs.costs(guest, &stop)?;
    progress.step();
    let mut rates = Vec::new();
    for cpus in CPUS.into_iter().filter(|_| !exact) {
        rates.push((cpus, programs.rates(guest, cpus, &stop)?));
        progress.step();
    }
    Ok(kernel::Side { name, costs, rates })
}

/// The image as asked, or the fetched one.
fn linux(args: &KernelCompareArgs) -> Result<PathBuf, Failure> {
    let fetched = source("../../target/linux/vmlinuz");
    match &args.linux {
        Some(image) => Ok(image.clone()),
        None if fetched.exists() => Ok(fetched),
        None => Err(Failure::Unavailable(
            "no Linux image found: run crates/guests/linux.sh once to fetch Debian's, or name one \
             with --linux"
                .into(),
        )),
    }
}
