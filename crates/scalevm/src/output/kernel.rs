//! The costs of operations in guests.

use super::format::{self, grouped};
use super::short;
use super::table::{align_right, with_header};
use guests::measure::{Cost, Found, OPERATIONS, Operation};
use serde_json::{Value, json};

/// The figures of one kernel, in the order of [`OPERATIONS`].
pub struct Side {
    /// The kernel's name.
    pub name: &'static str,
    /// Instructions of each operation.
    pub costs: Vec<Found<Cost>>,
    /// Operations a second by the number of CPUs, where they are counted like this.
    pub rates: Vec<(u32, Vec<Option<Found<f64>>>)>,
}

/// Prints tables of costs and of rates, and the reasons for missing figures.
pub fn print(sides: &[Side]) {
    println!("Instructions of one operation: the fewest, and the median, of 1,000");
    let columns = sides
        .iter()
        .flat_map(|side| ["min", "median"].map(|what| format!("{} {what}", side.name)));
    let mut table = with_header(header(columns));
    for (row, one) in OPERATIONS.iter().enumerate() {
        let cells = sides.iter().flat_map(|side| match &side.costs[row] {
            Ok(cost) => [cost.min, cost.median].map(grouped),
            Err(_) => [none(), none()],
        });
        table.add_row(line(one, cells));
    }
    align_right(&mut table, 1..);
    if sides.iter().all(|side| side.rates.is_empty()) {
        format::print(&table);
    } else {
        format::print_of("instructions", &table);
        println!();
        rates(sides);
    }
    sides.iter().for_each(reasons);
}

fn rates(sides: &[Side]) {
    println!("Operations a second, of as many tasks as CPUs; noisy");
    let all = || {
        sides
            .iter()
            .flat_map(|side| side.rates.iter().map(move |rates| (side.name, rates)))
    };
    let columns = all().map(|(name, (cpus, _))| format!("{name} ×{cpus}"));
    let mut table = with_header(header(columns));
    for (row, one) in OPERATIONS.iter().enumerate() {
        let cells = all().map(|(_, (_, rates))| match &rates[row] {
            Some(Ok(rate)) => short(*rate),
            _ => none(),
        });
        if let Some(tasks) = one.tasks {
            let mut line = line(one, cells);
            line[0] = format!("{} ({tasks})", line[0]);
            table.add_row(line);
        }
    }
    align_right(&mut table, 1..);
    format::print_of("rates", &table);
}

fn header(columns: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once("operation".to_owned())
        .chain(columns)
        .collect()
}

fn line(one: &Operation, cells: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once(one.about.to_owned()).chain(cells).collect()
}

fn none() -> String {
    "–".into()
}

/// Says for each operation without a figure why there is none: once, whatever was measured of it.
fn reasons(side: &Side) {
    for (row, one) in OPERATIONS.iter().enumerate() {
        let rates = side.rates.iter().map(|(_, rates)| &rates[row]);
        let rates = rates.flatten().filter_map(|rate| rate.as_ref().err());
        if let Some(why) = side.costs[row]
            .as_ref()
            .err()
            .into_iter()
            .chain(rates)
            .next()
        {
            println!("{}: {}: {why}", side.name, one.name);
        }
    }
}

/// Prints one object for each operation of each side.
pub fn print_json(sides: &[Side]) {
    for side in sides {
        for (row, one) in OPERATIONS.iter().enumerate() {
            println!("{}", object(side, row, one));
        }
    }
}

fn object(side: &Side, row: usize, one: &Operation) -> Value {
    let rate = |(cpus, rates): &(u32, Vec<Option<Found<f64>>>)| {
        let rate = rates[row].as_ref()?;
        Some(json!({ "cpus": cpus, "rate": rate.as_ref().ok(), "why": rate.as_ref().err() }))
    };
    let cost = side.costs[row].as_ref();
    json!({
        "kind": "operation",
        "system": side.name,
        "operation": one.name,
        "min": cost.ok().map(|cost| cost.min),
        "median": cost.ok().map(|cost| cost.median),
        "why": cost.err(),
        "rates": side.rates.iter().filter_map(rate).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_figure_has_a_reason() {
        let mut costs = vec![Ok(Cost { min: 1, median: 2 }); OPERATIONS.len()];
        costs[1] = Err("exit 1: ".to_owned());
        let rates = vec![(2, vec![Some(Ok(5.0)); OPERATIONS.len()])];
        let side = Side {
            name: "linux",
            costs,
            rates,
        };
        let [known, unknown] = [0, 1].map(|row| object(&side, row, &OPERATIONS[row]));
        assert_eq!((&known["min"], &known["why"]), (&json!(1), &Value::Null));
        assert_eq!(
            (&unknown["min"], &unknown["why"]),
            (&Value::Null, &json!("exit 1: "))
        );
        assert_eq!(unknown["rates"][0]["rate"], json!(5.0));
    }
}
