//! Where the results come from: warnings, machines, and how to reproduce them.

use crate::Page;
use crate::page::{Cell, Machines, Row};
use maud::{Markup, html};

pub fn section(page: &Page<'_>) -> Markup {
    html! {
        section #machine aria-labelledby="machine-title" {
            h2 #machine-title { "Machine" }
            h3 #warnings { "Warnings" }
            @if page.warnings.is_empty() {
                p { "None: as far as was observed, the machine was quiet." }
            } @else {
                ul.warnings { @for warning in &page.warnings { li { (warning) } } }
            }
            h3 { "Where the results were measured" }
            @for machine in &page.machines.simulated { p { "Simulated: " (machine) "." } }
            @if !page.machines.columns.is_empty() { (table(&page.machines)) }
            h3 { "How to repeat the measurement" }
            @if page.commands.is_empty() {
                p { "The files do not say how they were made." }
            }
            @for command in &page.commands {
                pre.command tabindex="0" role="region" aria-label="Command" { code { (command) } }
            }
        }
    }
}

fn table(machines: &Machines) -> Markup {
    html! {
        div.scroll role="region" tabindex="0" aria-label="Machines" {
            table.machine {
                caption { "What the files say about their machines"
                    @if machines.columns.len() > 1 { "; differences are marked" } }
                thead { tr {
                    th scope="col" { "" }
                    @for column in &machines.columns { th scope="col" { (column) } }
                } }
                tbody { @for row in &machines.rows { (fact(row)) } }
            }
        }
    }
}

fn fact(row: &Row) -> Markup {
    html! {
        tr.differs[row.differs] {
            th scope="row" { (row.label) @if row.differs { " " span.word.open { "differs" } } }
            @match row.cells.split_first() {
                // A fact that is the same everywhere appears once.
                Some((first, others)) if others.iter().all(|other| other == first) => {
                    td colspan=(row.cells.len()) { (value(first)) }
                }
                _ => { @for cell in &row.cells { td { (value(cell)) } } }
            }
        }
    }
}

fn value(cell: &Cell) -> Markup {
    html! {
        @match cell {
            Cell::Known(text) => (text),
            Cell::Unknown(why) => span.unknown { "not known: " (why) },
            Cell::List(items) => {
                details {
                    summary { (items.len()) " entries" }
                    dl { @for (name, text) in items { dt { (name) } dd { (text) } } }
                }
            }
        }
    }
}
