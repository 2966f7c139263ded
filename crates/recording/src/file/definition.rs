//! Definitions: the environment, processes, threads, files.

use super::wire::{Flaw, Wire, held};
use crate::{Birth, Environment, File, Lost, Process, Thread};

const BIRTHS: [Birth; 3] = [Birth::Existed, Birth::Forked, Birth::Foreign];

pub fn environment(wire: &mut impl Wire, environment: &mut Environment) -> Result<(), Flaw> {
    wire.text(&mut environment.kernel)?;
    wire.small(&mut environment.cpus)?;
    wire.text(&mut environment.huge_pages)?;
    wire.small(&mut environment.overcommit)?;
    wire.number(&mut environment.max_map_count)?;
    wire.each(&mut environment.variables, |wire, (name, value)| {
        wire.text(name)?;
        wire.text(value)
    })
}

pub fn process(wire: &mut impl Wire, process: &mut Process) -> Result<(), Flaw> {
    wire.small(&mut process.pid)?;
    wire.text(&mut process.name)?;
    wire.one_of(&mut process.birth, &BIRTHS)
}

pub fn thread(wire: &mut impl Wire, thread: &mut Thread) -> Result<(), Flaw> {
    wire.small(&mut thread.tid)?;
    wire.small(&mut thread.process)?;
    wire.text(&mut thread.name)
}

pub fn file(wire: &mut impl Wire, file: &mut File) -> Result<(), Flaw> {
    wire.text(&mut file.name)?;
    wire.number(&mut file.length)
}

pub fn toll(wire: &mut impl Wire, lost: &mut Lost, cost: &mut Option<f64>) -> Result<(), Flaw> {
    wire.number(&mut lost.records)?;
    wire.number(&mut lost.unknown)?;
    let mut is_known = cost.is_some();
    let mut has_switches = lost.switches > 0;
    wire.flags([&mut is_known, &mut has_switches])?;
    if let Some(cost) = held(cost, is_known) {
        let mut bits = cost.to_bits();
        wire.number(&mut bits)?;
        *cost = f64::from_bits(bits);
        if !cost.is_finite() {
            return Err(format!("a cost is {cost}"));
        }
    }
    if has_switches {
        wire.number(&mut lost.switches)?;
    }
    Ok(())
}
