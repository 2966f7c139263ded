//! `scalevm calibrate`: this computer as a machine profile.

use crate::cli::CalibrateArgs;
use crate::output::progress::Progress;
use crate::output::{file, table};
use bench::{Failure, interrupt};
use calibration::calibrate::{self, Computer, Figure};
use sim::profile::MachineProfile;
use stats::environment::{Tool, collect_below};
use std::path::Path;
use std::time::Duration;

/// Rounds of a median, and of a quick one.
const ROUNDS: (usize, usize) = (1001, 101);

/// Measures, shows the figures on stderr, and writes the profile.
pub fn run(args: &CalibrateArgs) -> Result<u8, Failure> {
    let unusable = |error: sim::profile::ProfileError| Failure::Unavailable(error.to_string());
    let base = MachineProfile::named(&args.base).map_err(unusable)?;
    let computer = Computer::read().map_err(Failure::start("CPU affinity"))?;
    super::prepare()?;
    args.output.as_deref().map_or(Ok(()), file::check)?;
    let rounds = if args.quick { ROUNDS.1 } else { ROUNDS.0 };
    let figures = measure(&computer, rounds)?;
    if interrupt::pending().is_some() {
        return Ok(super::finished());
    }
    let profile = calibrate::profile(&args.name, &cpu(), &computer, &figures, &base);
    profile.check().map_err(unusable)?;
    let text = profile.to_toml();
    eprintln!("{}", table::profile(&profile, &figures, &base.name));
    match &args.output {
        Some(path) => file::write(path, text.as_bytes())?,
        None => print!("{text}"),
    }
    Ok(super::finished())
}

fn measure(computer: &Computer, rounds: usize) -> Result<Vec<Figure>, Failure> {
    let progress = Progress::new(calibrate::COUNT as u64, "steps");
    let figures = calibrate::measure(computer, rounds, |step| {
        progress.point(step);
        progress.step();
    });
    progress.finish();
    figures
}

/// The CPU's model, and a remark if it is a virtual one.
fn cpu() -> String {
    let tool = Tool {
        version: env!("CARGO_PKG_VERSION"),
        commit: None,
        arguments: &[],
    };
    let environment = collect_below(Path::new("/"), &tool, Duration::ZERO);
    let model = environment.cpu.unwrap_or_else(|| "an unnamed CPU".into());
    match environment.hypervisor.as_deref() {
        None | Some("none") => model,
        Some(_) => format!("{model} in a virtual machine"),
    }
}
