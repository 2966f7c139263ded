//! Checks of a file of published curves.

use super::{After, File, Machine, Point, Source, Told, Unit, rate_at};
use std::collections::BTreeSet;

/// A source, machines that curves name, and curves that are what they say.
pub fn file(file: &File) -> Result<(), String> {
    source(&file.source)?;
    for (name, of) in &file.machines {
        machine(of).map_err(|why| format!("machine {name}: {why}"))?;
        let used = file.curve.iter().any(|curve| curve.machine == *name);
        ensure(used, || format!("machine {name}: no curve names it"))?;
    }
    let mut names = BTreeSet::new();
    for told in &file.curve {
        let fail = |why| format!("curve {}: {why}", told.name);
        ensure(names.insert(&told.name), || fail("there twice".into()))?;
        let known = file.machines.contains_key(&told.machine);
        ensure(known, || fail(format!("no machine {}", told.machine)))?;
        curve(told).map_err(fail)?;
    }
    ensure(!names.is_empty(), || "no curve".into())
}

fn source(source: &Source) -> Result<(), String> {
    let said = [&source.title, &source.author].map(|text| !text.trim().is_empty());
    ensure(said == [true; 2], || "source: no title or no author".into())?;
    let web = source.address.starts_with("https://");
    ensure(web, || {
        format!("source: {} is not an address", source.address)
    })?;
    let parts: Vec<_> = source.date.split('-').map(str::parse::<u32>).collect();
    let day = matches!(parts[..], [Ok(1990..), Ok(1..=12), Ok(1..=31)]);
    ensure(day && source.date.len() == 10, || {
        format!("source: {} is not a date such as 2020-09-15", source.date)
    })
}

fn machine(machine: &Machine) -> Result<(), String> {
    ensure(!machine.cpu.trim().is_empty(), || "no cpu".into())?;
    ensure(machine.cpus > 0, || "no CPUs".into())?;
    let (Some(sockets), Some(cores), Some(threads)) =
        (machine.sockets, machine.cores, machine.threads)
    else {
        return Ok(());
    };
    ensure(sockets * cores * threads == machine.cpus, || {
        let cpus = machine.cpus;
        format!("{sockets} sockets × {cores} cores × {threads} threads are not {cpus} CPUs")
    })
}

fn curve(told: &Told) -> Result<(), String> {
    let words = [&told.name, &told.workload, &told.kernel];
    let said = words.iter().all(|word| !word.trim().is_empty());
    ensure(said, || "no name, workload or kernel".into())?;
    points(&told.points)?;
    let one = rate_at(&told.points, 1);
    let relative = told.unit != Unit::TimesOne || one == Some(1.0);
    ensure(relative, || "times one task, and one task is not 1".into())?;
    match &told.after {
        Some(after) => pair(&told.points, after),
        None => ensure(told.points.len() > 1, || {
            "a curve needs at least two points".into()
        }),
    }
}

/// Tasks rise, and rates are rates.
pub fn points(points: &[Point]) -> Result<(), String> {
    ensure(!points.is_empty(), || "no points".into())?;
    let rates = points
        .iter()
        .all(|point| point.0 > 0 && point.1.is_finite() && point.1 > 0.0);
    ensure(rates, || "tasks and rates must be above zero".into())?;
    let unsorted = points.windows(2).find(|two| two[0].0 >= two[1].0);
    unsorted.map_or(Ok(()), |two| {
        Err(format!("{} tasks after {}", two[1].0, two[0].0))
    })
}

/// Both sides have a count of tasks, and the ratio that the source prints is that of its points.
fn pair(before: &[Point], after: &After) -> Result<(), String> {
    ensure(!after.kernel.trim().is_empty(), || {
        "after: no kernel".into()
    })?;
    points(&after.points).map_err(|why| format!("after: {why}"))?;
    let common = after
        .points
        .iter()
        .any(|point| rate_at(before, point.0).is_some());
    ensure(common, || {
        "before and after have no count of tasks in common".into()
    })?;
    let Some(Point(tasks, printed)) = after.ratio else {
        return Ok(());
    };
    let rates = (rate_at(before, tasks), rate_at(&after.points, tasks));
    let (Some(before), Some(after)) = rates else {
        return Err(format!(
            "a ratio at {tasks} tasks, where not both have a point"
        ));
    };
    let ratio = after / before;
    ensure((ratio / printed - 1.0).abs() < 0.005, || {
        format!("the ratio at {tasks} tasks is {ratio:.3}, not {printed}")
    })
}

fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}
