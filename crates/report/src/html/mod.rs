//! The page as HTML.

mod comparisons;
mod curves;
mod flames;
mod heat;
mod locks;
mod machines;
mod studies;
mod text;

pub(crate) use text::{percent, seconds};

use crate::Page;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use stats::printable;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The page may run only its own script, identified by this hash. When the script changes, a
/// browser test fails and prints the right hash.
const SCRIPT_HASH: &str = "sha256-pR7CjDBnOqP/J4yD7JFR64TAyykoefmqyW/LMbgvmls=";

/// The whole page. Names of others may have characters that a page must not have: they are seen as
/// escapes.
pub fn document(page: &Page<'_>) -> Markup {
    let markup = whole(page).into_string();
    PreEscaped(printable(&markup).into_owned())
}

fn whole(page: &Page<'_>) -> Markup {
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src '{SCRIPT_HASH}'; img-src data:; \
         base-uri 'none'; form-action 'none'"
    );
    let subject = page.workloads.join(", ");
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "scalevm " (env!("CARGO_PKG_VERSION")) };
                title { @if !subject.is_empty() { (subject) " – " } "scalevm report" }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#main" { "Skip to the verdict" }
                (header(page, &subject))
                main #main tabindex="-1" { (sections(page)) }
                footer { "Made by scalevm " (env!("CARGO_PKG_VERSION")) ". This page is a single \
                    file and makes no network requests." }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

fn header(page: &Page<'_>, subject: &str) -> Markup {
    let name = |section: &str| match section {
        "verdict" => "Verdict",
        "studies" => "Case studies",
        "curves" => "Curves",
        "comparison" => "Before and after",
        "locks" => "Locks",
        "flames" => "Flame graphs",
        _ => "Machine",
    };
    html! {
        header {
            p.kicker { b { "scalevm" } @if !subject.is_empty() { " " span { (subject) } } }
            nav aria-label="Sections" {
                ul { @for section in page.sections() {
                    li { a href={ "#" (section) } { (name(section)) } }
                } }
            }
        }
    }
}

fn sections(page: &Page<'_>) -> Markup {
    html! {
        section #verdict aria-label="Verdict" {
            @for (index, sentence) in page.headline.iter().enumerate() {
                @if index == 0 { h1 { (sentence) } } @else { p.lead { (sentence) } }
            }
            p.files { @if page.files.len() == 1 { "From " } @else { "From, in this order, " }
                @for (index, file) in page.files.iter().enumerate() {
                    @if index > 0 { ", " } code { (file) }
                } "."
            }
            @if !page.warnings.is_empty() {
                p {
                    a href="#warnings" {
                        (page.warnings.len())
                        @if page.warnings.len() == 1 { " warning" } @else { " warnings" }
                    }
                    " about these results."
                }
            }
        }
        @if !page.studies.is_empty() { (studies::section(&page.studies)) }
        @if !page.charts.is_empty() { (curves::section(&page.charts)) }
        @if !page.comparisons.is_empty() { (comparisons::section(&page.comparisons)) }
        @let present = page.sections();
        @if present.contains(&"locks") { (locks::section(&page.profiles)) }
        @if present.contains(&"flames") { (flames::section(&page.profiles)) }
        (machines::section(page))
    }
}
