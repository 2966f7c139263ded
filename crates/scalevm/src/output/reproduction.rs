//! The seeds' figures beside ours, as tables and as JSON.

use super::short;
use super::table::{align_right, with_header};
use crate::reproduce::{Aim, Lab, Row, System, Verdict};
use comfy_table::Table;
use serde_json::json;

/// Prints a table, and a line for each miss and each note.
pub fn print(system: &System, lab: &Lab, rows: &[Row]) {
    if rows.is_empty() {
        return;
    }
    let machine = lab.machine();
    let shape = machine.topology.shape();
    println!(
        "\n{}: {}, on {} ({shape})",
        system.name, system.about, machine.name
    );
    println!("{}", table(rows));
    for row in rows {
        if row.verdict() != Verdict::Holds {
            println!("{}: {}: {}", row.what, row.verdict().name(), row.reason());
        }
        if let Some(note) = &row.note {
            println!("{}: {note}", row.what);
        }
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = with_header([
        "figure",
        "seed or aim",
        "ours",
        "seeds",
        "corners",
        "ratio",
        "verdict",
    ]);
    for row in rows {
        let show = |value: f64| figure(row, value);
        let (low, high) = row.range();
        let aim = match row.aim {
            Aim::Seed { figure, .. } => show(figure),
            Aim::AtLeast(least, _) => format!("≥ {}", show(least)),
            Aim::AtMost(most, _) => format!("≤ {}", show(most)),
        };
        table.add_row([
            row.what.clone(),
            aim,
            show(row.ours.median),
            format!("{}–{}", show(row.ours.low), show(row.ours.high)),
            match row.corners.is_empty() {
                true => "–".into(),
                false => format!("{}–{}", show(low), show(high)),
            },
            format!("{:.2}", row.ratio()),
            row.verdict().name().to_owned(),
        ]);
    }
    align_right(&mut table, 1..6);
    table
}

fn figure(row: &Row, value: f64) -> String {
    match row.is_rate {
        true => short(value),
        false => format!("{value:.2}"),
    }
}

/// Prints one object a line.
pub fn print_json(system: &System, lab: &Lab, rows: &[Row]) {
    let machine = lab.machine();
    for row in rows {
        let (low, high) = row.range();
        let (aim, source, band) = match row.aim {
            Aim::Seed { quote, band, .. } => ("seed", quote, Some(band)),
            Aim::AtLeast(_, source) => ("at-least", source, None),
            Aim::AtMost(_, source) => ("at-most", source, None),
        };
        let line = json!({
            "kind": "reproduction",
            "system": system.name,
            "what": row.what,
            "unit": if row.is_rate { "1/s" } else { "1" },
            "machine": machine.name,
            "topology": machine.topology.shape(),
            "seeds": lab.seeds(),
            "aim": aim,
            "figure": row.aim.figure(),
            "source": source,
            "median": row.ours.median,
            "low": row.ours.low,
            "high": row.ours.high,
            "corners_low": low,
            "corners_high": high,
            "ratio": row.ratio(),
            "band": band.map(|band| json!({ "kind": band.kind, "low": band.low, "high": band.high })),
            "verdict": match row.verdict() {
                Verdict::Holds => "holds",
                Verdict::AtACorner | Verdict::Misses => "misses",
            },
            "holds_at_a_corner": row.corners.iter().any(|&corner| row.aim.holds(corner)),
            "why": row.why.filter(|_| row.verdict() != Verdict::Holds),
            "note": row.note,
        });
        println!("{line}");
    }
}
