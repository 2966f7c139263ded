//! Incidents as tables and as JSON.

use super::table::{align_right, with_header};
use super::{format, short, time};
use bench::On;
use serde_json::json;
use studies::incidents::{Finding, Findings, Incident, Measure, Setting};

/// Prints a row for each incident.
pub fn list(all: &[Incident]) {
    let mut table = with_header(["incident", "shape", "program", "date", "what happened"]);
    for Incident { name, about, .. } in all {
        let shape = format!("{:?}", about.shape);
        table.add_row([name, &shape, &about.program, &about.date, &about.title]);
    }
    format::print(&table);
}

/// Prints a line of JSON for each incident.
pub fn list_json(all: &[Incident]) {
    for Incident { name, about, .. } in all {
        let line = json!({
            "kind": "incident",
            "incident": name,
            "shape": format!("{:?}", about.shape),
            "program": about.program,
            "date": about.date,
            "title": about.title,
            "source": about.source,
            "operations": about.operations,
        });
        println!("{line}");
    }
}

/// Prints what was found in a run of an incident.
pub fn print(incident: &Incident, on: On, findings: &Findings<'_>) {
    let about = &incident.about;
    println!("{}: {}", incident.name, about.title);
    println!(
        "{}, {}; {}: {}",
        about.program,
        about.date,
        on.name(),
        place(&about.at, on)
    );
    let mut table = with_header([
        "compared by",
        "change",
        "before",
        "after",
        "factor",
        "published",
    ]);
    for one in &findings.all {
        let (by, show): (_, fn(f64) -> String) = match one.by {
            Measure::Rate => ("requests/s", short),
            Measure::Wait => ("longest wait", time),
        };
        table.add_row([
            by.to_owned(),
            one.what.to_owned(),
            show(one.values[0]),
            show(one.values[1]),
            format!("{:.2}", one.factor),
            one.published
                .map_or_else(|| "–".to_owned(), |factor| factor.to_string()),
        ]);
    }
    align_right(&mut table, 2..);
    format::print(&table);
    let verdict = match findings.is_named {
        true => "as it was told".to_owned(),
        false => format!("the story tells of {}", about.named),
    };
    println!("bottleneck: {} ({verdict})", findings.bottleneck);
    for one in findings.all.iter().filter(|one| !one.holds) {
        let why = one.explained.unwrap_or("not explained");
        println!(
            "{}: {:.2} is not as it was told: {why}",
            one.what, one.factor
        );
    }
    println!();
}

/// Prints the same as a line of JSON.
pub fn print_json(incident: &Incident, on: On, findings: &Findings<'_>) {
    let at = &incident.about.at;
    let comparison = |one: &Finding<'_>| {
        json!({
            "what": one.what,
            "unit": match one.by {
                Measure::Rate => "requests/s",
                Measure::Wait => "s",
            },
            "before": one.values[0],
            "after": one.values[1],
            "factor": one.factor,
            "published": one.published,
            "holds": one.holds,
            "explained": one.explained,
        })
    };
    let line = json!({
        "kind": "incident run",
        "incident": incident.name,
        "on": on.name(),
        "vm": (on != On::Os).then_some(at.vm.name),
        "machine": (on == On::Sim).then(|| at.place()),
        "threads": at.threads,
        "bottleneck": findings.bottleneck,
        "named": incident.about.named,
        "is_named": findings.is_named,
        "comparisons": findings.all.iter().map(comparison).collect::<Vec<_>>(),
        "holds": findings.hold(),
    });
    println!("{line}");
}

/// Where it ran.
fn place(at: &Setting, on: On) -> String {
    let threads = stats::count(at.threads, "thread");
    match on {
        On::Sim => format!("{} on {}, {threads}", at.vm, at.place()),
        On::Os => threads,
        On::Hosted | On::Kernel => format!("{}, {threads}", at.vm),
    }
}
