//! The figures of `docs/costs.md`: a test holds each of them, or writes it.
//!
//! A row of a table there begins with the name of its case: `` | `map-unmap` | … | ``. It has a
//! column for builds without observers of the locks, and one for those in which all can be watched.

use std::any::{TypeId, type_name};
use std::fs;
use std::path::PathBuf;
use sync::watch::{Both, DefaultObserver, LockProfile, Off, Order};

/// The column of the build that this is.
///
/// # Panics
/// If the page has no column for it.
fn column() -> &'static str {
    let observer = TypeId::of::<DefaultObserver>();
    if observer == TypeId::of::<Off>() {
        "unwatched"
    } else if observer == TypeId::of::<Both<Order, LockProfile>>() {
        "watched"
    } else {
        let features = "none of the features lock-order and lock-profile, or both";
        panic!("docs/costs.md has figures of builds with {features}")
    }
}

/// The output of an example for the argument `observer`.
pub fn observer() -> &'static str {
    type_name::<DefaultObserver>()
}

/// Holds the count of each case to a tenth of the page's figure in the column of this
/// build, or writes it there if `PAGES` is in the environment; returns the errors. Each row of the
/// table under `heading` must be counted, and the other way round.
pub fn hold(heading: &str, counted: &[(&str, u64)]) -> Vec<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/costs.md");
    let page = fs::read_to_string(&path).expect("the page");
    let column = column();
    let writes = std::env::var_os("PAGES").is_some();
    let (mut new, mut wrong, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    let (mut is_here, mut at) = (false, None);
    for line in page.lines() {
        if line.starts_with('#') {
            is_here = line.trim_start_matches('#').trim() == heading;
        }
        let mut cells: Vec<String> = line.split('|').map(str::to_owned).collect();
        if is_here && let Some(found) = cells.iter().position(|cell| cell.trim() == column) {
            at = Some(found);
        }
        let name = cells
            .get(1)
            .map_or("", |cell| cell.trim().trim_matches('`'));
        if let (true, Some(at), true) = (is_here, at, line.starts_with("| `")) {
            seen.push(name.to_owned());
            let Some(&(_, each)) = counted.iter().find(|(case, _)| *case == name) else {
                wrong.push(format!("{name} is on the page, and was not counted"));
                new.push(line.to_owned());
                continue;
            };
            let said = cells[at].trim().replace(',', "").parse().unwrap_or(0);
            if each.abs_diff(said) * 10 > said {
                wrong.push(format!("{name}, {column}: {each} instructions, not {said}"));
                cells[at] = format!(" {} ", grouped(each));
            }
        }
        new.push(cells.join("|"));
    }
    for (name, _) in counted {
        if !seen.iter().any(|seen| seen == name) {
            wrong.push(format!("{name} was counted, and is not on the page"));
        }
    }
    if writes {
        fs::write(&path, new.join("\n") + "\n").expect("the page is written");
        wrong.retain(|why| !why.contains(", not "));
    }
    wrong
}

/// `12,345`.
fn grouped(number: u64) -> String {
    match number {
        1000.. => format!("{},{:03}", grouped(number / 1000), number % 1000),
        _ => number.to_string(),
    }
}
