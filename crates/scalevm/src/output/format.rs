//! The requested format of tables.

use crate::stdout;
use clap::ValueEnum;
use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{Row, Table};
use stats::shortened;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The format of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people, with the text around the tables
    #[default]
    Text,
    /// Only Markdown tables; other text goes to standard error
    Markdown,
    /// Only comma-separated values, with plain numbers; other text goes to standard error
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

/// Returns true if numbers are for machines.
pub fn is_plain() -> bool {
    CHOSEN.get() == Some(&Format::Csv)
}

/// Returns true if tables are for people.
pub fn is_text() -> bool {
    matches!(CHOSEN.get(), None | Some(Format::Text))
}

/// A count with commas between thousands, unless it is for a machine.
pub fn grouped(count: u64) -> String {
    if is_plain() {
        return count.to_string();
    }
    let digits = count.to_string();
    let parts = digits.as_bytes().rchunks(3).rev();
    let parts = parts.map(|part| String::from_utf8_lossy(part).into_owned());
    parts.collect::<Vec<_>>().join(",")
}

/// Letters of a cell for people at most.
const WIDEST: usize = 100;

pub fn print(table: &Table) {
    debug_assert!(
        names_differ(table),
        "two columns have one name: {:?}",
        columns(table)
    );
    match CHOSEN.get() {
        None | Some(Format::Text) => {
            let short = |text: &str| shortened(text, WIDEST).into_owned();
            stdout::data(format_args!("{}", with_cells(table, short)));
        }
        Some(Format::Markdown) => data(&markdown(table)),
        Some(Format::Csv) => data(csv(table).trim_end()),
    }
}

/// The table with each cell's text changed.
fn with_cells(table: &Table, change: impl Fn(&str) -> String) -> Table {
    let mut table = table.clone();
    let changed = |row: &Row| Row::from(row.cell_iter().map(|cell| change(&cell.content())));
    if let Some(header) = table.header().map(&changed) {
        table.set_header(header);
    }
    for row in table.row_iter_mut() {
        *row = changed(row);
    }
    table
}

/// A table of Markdown, whose cells show what they hold.
fn markdown(table: &Table) -> String {
    let mut table = with_cells(table, literal);
    table.load_style(ASCII_MARKDOWN);
    table.to_string()
}

/// A text in which nothing is Markdown, on one line.
fn literal(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let after = letters.peek().copied().unwrap_or(' ');
        let acts = match letter {
            '\\' | '|' | '*' | '`' | '<' | '[' | '~' | '&' => true,
            // Within a word it is a letter.
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()),
            _ => false,
        };
        if acts {
            shown.push('\\');
        }
        shown.push(if letter == '\n' { ' ' } else { letter });
        before = letter;
    }
    shown
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
        wider.set_header(with("table", header));
    }
    for row in table.row_iter() {
        wider.add_row(with(what, row));
    }
    print(&wider);
}

/// The names of the columns that a table has as comma-separated values.
fn columns(table: &Table) -> Vec<String> {
    let header = table.header().into_iter().flat_map(Row::cell_iter);
    let names = header.map(|cell| cell.content());
    names
        .flat_map(|name| name.split(DASH).map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

/// Returns true if no two columns have the same name. Columns without a name do not count.
fn names_differ(table: &Table) -> bool {
    let mut names = columns(table);
    names.retain(|name| !name.is_empty());
    let all = names.len();
    names.sort();
    names.dedup();
    names.len() == all
}

/// Parts the ends of a range, and stands for what is not known.
const DASH: &str = "–";

/// By RFC 4180, but for the line ends. A range becomes two columns, its ends, and what is not known
/// an empty cell.
fn csv(table: &Table) -> String {
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
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        let mut table = Table::new();
        table.set_header(["a", "b"]);
        table.add_row(["x, y", "say \"no\""]);
        table.add_row(["1", ""]);
        assert_eq!(csv(&table), "a,b\n\"x, y\",\"say \"\"no\"\"\"\n1,\n");
    }

    #[test]
    fn markdown_shows_what_a_cell_holds() {
        let mut table = Table::new();
        table.set_header(["label", "n"]);
        table.add_row(["a|b *x* `y` <b> [z](u) ~s~ &lt;", "1"]);
        table.add_row(["two\nlines \\", "2"]);
        table.add_row(["page_fault1 __vm_munmap _i_", "3"]);
        let text = markdown(&table);
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows.len(), 5, "{text}");
        let cell = |row: usize| rows[row].split(" | ").next().unwrap_or("").trim();
        assert_eq!(cell(2), r"| a\|b \*x\* \`y\` \<b> \[z](u) \~s\~ \&lt;");
        assert_eq!(cell(3), r"| two lines \\");
        assert_eq!(cell(4), r"| page_fault1 \_\_vm_munmap \_i\_");
    }

    #[test]
    fn columns_of_one_name_are_seen() {
        let mut table = Table::new();
        table.set_header(["", "", "a–b", "c"]);
        assert!(names_differ(&table));
        table.set_header(["a–b", "b"]);
        assert!(!names_differ(&table));
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
