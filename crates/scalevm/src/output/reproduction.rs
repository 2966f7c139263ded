//! Published and simulated figures, as tables and as JSON.

use super::format;
use super::table::{align_right, with_header};
use super::{percent, short};
use comfy_table::Table;
use serde_json::json;
use studies::{Aim, Class, Lab, Row, System, Unit, Verdict};

/// Prints a table, a table of checks of the instrument, and a line for each miss and each note.
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
    let (checks, figures): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.class() == Class::Check);
    if !figures.is_empty() {
        format::print_of(system.name, &table(&figures));
    }
    if !checks.is_empty() {
        println!("checks of the instrument, which hold by construction:");
        format::print_of(&format!("{}, check", system.name), &table(&checks));
    }
    for row in rows {
        if row.verdict() != Verdict::Holds {
            println!("{}: {}: {}", row.what, row.verdict().name(), row.reason());
        }
        if let Some(note) = &row.note {
            println!("{}: {note}", row.what);
        }
    }
    let seconds: f64 = rows.iter().map(|row| row.seconds).sum();
    println!("{} took {seconds:.1} s", system.name);
}

fn table(rows: &[&Row]) -> Table {
    let mut table = with_header([
        "figure",
        "published or aim",
        "simulated",
        "seeds",
        "extremes",
        "ratio",
        "band",
        "verdict",
        "s",
    ]);
    for row in rows {
        let show = |value: f64| figure(row, value);
        let (low, high) = row.range();
        let (aim, band) = match row.aim {
            Aim::Published { figure, band, .. } => {
                (show(figure), format!("{:.2}–{:.2}", band.low, band.high))
            }
            Aim::AtLeast(least, _) => (format!("≥ {}", show(least)), "aim".into()),
            Aim::AtMost(most, _) => (format!("≤ {}", show(most)), "aim".into()),
            Aim::Words { low, high, .. } if high.is_infinite() => {
                (format!("≥ {}", show(low)), "words".into())
            }
            Aim::Words { low, high, .. } => {
                (format!("{}–{}", show(low), show(high)), "words".into())
            }
        };
        table.add_row([
            row.what.clone(),
            aim,
            show(row.ours.median),
            format!("{}–{}", show(row.ours.low), show(row.ours.high)),
            if row.corners.is_empty() {
                "–".into()
            } else {
                format!("{}–{}", show(low), show(high))
            },
            row.ratio()
                .map_or("–".into(), |ratio| format!("{ratio:.2}")),
            band,
            row.verdict().name().to_owned(),
            format!("{:.1}", row.seconds),
        ]);
    }
    align_right(&mut table, 1..7);
    table
}

fn figure(row: &Row, value: f64) -> String {
    match row.unit {
        Unit::Rate => short(value),
        Unit::Share => percent(value),
        Unit::Number => format!("{value:.2}"),
    }
}

/// Prints one object a line.
pub fn print_json(system: &System, lab: &Lab, rows: &[Row]) {
    let machine = lab.machine();
    for row in rows {
        let (low, high) = row.range();
        let (aim, source, band) = match row.aim {
            Aim::Published { quote, band, .. } => ("seed", quote, Some(band)),
            Aim::AtLeast(_, source) => ("at-least", source, None),
            Aim::AtMost(_, source) => ("at-most", source, None),
            Aim::Words { quote, .. } => ("words", quote, None),
        };
        let words = match row.aim {
            Aim::Words { low, high, .. } => Some(json!({ "low": low, "high": high })),
            _ => None,
        };
        let line = json!({
            "kind": "reproduction",
            "document": system.document(),
            "system": system.name,
            "what": row.what,
            "unit": match row.unit {
                Unit::Rate => "1/s",
                Unit::Share => "share",
                Unit::Number => "1",
            },
            "machine": machine.name,
            "topology": machine.topology.shape(),
            "seeds": lab.seeds(),
            "aim": aim,
            "class": row.class().name(),
            "figure": row.aim.figure(),
            "source": source,
            "median": row.ours.median,
            "low": row.ours.low,
            "high": row.ours.high,
            "has_corners": !row.corners.is_empty(),
            "corners_low": low,
            "corners_high": high,
            "ratio": row.ratio(),
            "band": band.map(|band| {
                json!({ "kind": band.kind, "low": band.low, "high": band.high })
            }),
            "words": words,
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
