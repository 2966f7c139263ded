//! The requested format of tables.

use crate::stdout;
use clap::ValueEnum;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{Row, Table};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How tables are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people, with the text beside them
    #[default]
    Text,
    /// Tables of Markdown only; other text goes to standard error
    Markdown,
    /// The same as comma-separated values, with plain numbers
    Csv,
}

static CHOSEN: OnceLock<Format> = OnceLock::new();

/// Chooses for the whole command. Lines of JSON stay where they are: the options exclude each
/// other.
pub fn choose(format: Format) {
    let format = *CHOSEN.get_or_init(|| format);
    if format != Format::Text {
        stdout::tables_only();
    }
}

/// Whether numbers are for machines.
pub fn is_plain() -> bool {
    CHOSEN.get() == Some(&Format::Csv)
}

/// Whether tables are for people.
pub fn is_text() -> bool {
    matches!(CHOSEN.get(), None | Some(Format::Text))
}

/// Prints a table.
pub fn print(table: &Table) {
    match CHOSEN.get() {
        None | Some(Format::Text) => stdout::data(format_args!("{table}")),
        Some(Format::Markdown) => {
            let mut table = table.clone();
            table.load_style(ASCII_MARKDOWN);
            data(&table.to_string());
        }
        Some(Format::Csv) => data(csv(table).trim_end()),
    }
}

/// Prints a table without text; an empty line parts it from the one before.
fn data(table: &str) {
    static FOLLOWS: AtomicBool = AtomicBool::new(false);
    // Relaxed: one thread prints.
    if FOLLOWS.swap(true, Relaxed) {
        stdout::data(format_args!(""));
    }
    stdout::data(format_args!("{table}"));
}

/// Prints one of several tables: in formats without text around them each row names its table.
pub fn print_of(what: &str, table: &Table) {
    if is_text() {
        return print(table);
    }
    let with = |first: &str, row: &Row| {
        let cells = row.cell_iter().map(|cell| cell.content());
        let all: Vec<String> = std::iter::once(first.to_owned()).chain(cells).collect();
        all
    };
    let mut wider = Table::new();
    if let Some(header) = table.header() {
        wider.set_header(with("of", header));
    }
    for row in table.row_iter() {
        wider.add_row(with(what, row));
    }
    print(&wider);
}

/// By RFC 4180, but for the line ends. A range becomes two columns, its ends, and what is not known an empty cell.
fn csv(table: &Table) -> String {
    const DASH: &str = "–";
    let texts = |row: &Row| Vec::from_iter(row.cell_iter().map(|cell| cell.content()));
    let header = table.header().map(texts).unwrap_or_default();
    let line = |row: &Row| {
        let mut cells = Vec::new();
        for (index, text) in texts(row).iter().enumerate() {
            let is_range = header.get(index).is_some_and(|name| name.contains(DASH));
            match text.split_once(DASH).filter(|_| is_range) {
                Some((low, high)) => cells.extend([quoted(low.trim()), quoted(high.trim())]),
                None if text == DASH => cells.push(String::new()),
                None => cells.push(quoted(text.trim())),
            }
        }
        cells.join(",") + "\n"
    };
    table
        .header()
        .into_iter()
        .chain(table.row_iter())
        .map(line)
        .collect()
}

fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let mut table = Table::new();
        table.set_header(["a", "b"]);
        table.add_row(["x, y", "say \"no\""]);
        table.add_row(["1", ""]);
        assert_eq!(csv(&table), "a,b\n\"x, y\",\"say \"\"no\"\"\"\n1,\n");
    }

    #[test]
    fn both_ends_of_a_range_are_numbers() {
        let mut table = Table::new();
        table.set_header(["low–high", "speedup"]);
        table.add_row(["1–2.5", "–"]);
        table.add_row(["–", "1–2"]);
        assert_eq!(csv(&table), "low,high,speedup\n1,2.5,\n,,1–2\n");
    }
}
