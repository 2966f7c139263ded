//! Published and reproduced figures: a table per case study, with each ratio as a mark on its band.

use super::text::percent;
use crate::Reproduction;
use crate::page::{Study, held};
use maud::{Markup, html};
use stats::metric;

/// The bar's size in its own units, and the ratios at its ends, as powers of two.
const SIZE: (f64, f64) = (120.0, 16.0);
const ENDS: f64 = 3.0;

pub fn section(studies: &[Study]) -> Markup {
    html! {
        section #studies aria-labelledby="studies-title" {
            h2 #studies-title { "Published and simulated figures" }
            p.note { "The machines are simulated. A bar spans an eighth to eight times the \
                      published figure; the line is that figure, the grey band is the expected \
                      error of such a prediction, and the dot is the simulated figure. A figure \
                      that holds at an extreme does so at one of the extremes that are plausible \
                      for unpublished properties of the machine." }
            @for study in studies { (one(study)) }
        }
    }
}

fn one(study: &Study) -> Markup {
    let missing = study.figures.iter().filter(|figure| !figure.holds());
    html! {
        h3 { "Case study " (study.document) ": " (held(study.part(false))) " hold" }
        (table(study, false, "Figures of the simulator"))
        @if study.part(true).next().is_some() {
            (table(study, true, &format!("Checks of the instrument, which hold by construction: {} \
                                          hold", held(study.part(true)))))
        }
        @for figure in missing { (said(figure, figure.why.as_deref().unwrap_or(&figure.source))) }
        @for figure in &study.figures {
            @if let Some(note) = &figure.note { (said(figure, note)) }
        }
    }
}

/// The table of simulated figures, or of checks.
fn table(study: &Study, checks: bool, caption: &str) -> Markup {
    let label = if checks {
        format!("Checks of case study {}", study.document)
    } else {
        format!("Figures of case study {}", study.document)
    };
    html! {
        div.scroll role="region" tabindex="0" aria-label=(label) {
            table.sortable {
                caption { (caption) }
                thead { tr {
                    @for name in ["System", "Figure", "Machine"] { th scope="col" { (name) } }
                    @for name in ["Published or aim", "Simulated", "Ratio"] {
                        th.number scope="col" { (name) }
                    }
                    th scope="col" { "Band" } th scope="col" { "Verdict" }
                } }
                tbody { @for figure in study.part(checks) { (row(figure)) } }
            }
        }
    }
}

fn said(figure: &Reproduction, what: &str) -> Markup {
    html! { p.note { b { (figure.system) ", " (figure.what) ": " } (what) } }
}

fn row(figure: &Reproduction) -> Markup {
    let sign = match figure.aim.as_str() {
        "at-least" => "≥ ",
        "at-most" => "≤ ",
        _ => "",
    };
    html! {
        tr {
            th scope="row" { (figure.system) }
            td { span title=(figure.source) { (figure.what) } }
            td { (figure.machine) " (" (figure.topology) ")" }
            td.number data-v=(figure.figure.unwrap_or(0.0)) {
                @match figure.figure {
                    Some(value) => { (sign) (shown(figure, value)) }
                    None => { "in words" }
                }
            }
            td.number data-v=(figure.median) { (shown(figure, figure.median)) }
            td.number data-v=(figure.ratio.unwrap_or(0.0)) {
                (figure.ratio.map_or("–".into(), |ratio| format!("{ratio:.2}")))
            }
            td { (bar(figure)) }
            td { span class={ "word " (class(figure)) } {
                (figure.verdict)
                @if !figure.holds() && figure.holds_at_a_corner { ", holds at an extreme" }
            } }
        }
    }
}

fn shown(figure: &Reproduction, value: f64) -> String {
    match figure.unit.as_str() {
        "1/s" => format!("{}/s", metric(value)),
        "share" => percent(value),
        _ => metric(value),
    }
}

fn class(figure: &Reproduction) -> &'static str {
    match (figure.holds(), figure.holds_at_a_corner) {
        (true, _) => "good",
        (false, true) => "open",
        (false, false) => "bad",
    }
}

/// The ratio on its band; nothing without a figure.
fn bar(figure: &Reproduction) -> Markup {
    let Some(ratio) = figure.ratio else {
        return html! {};
    };
    let (low, high) = match (&figure.band, figure.aim.as_str()) {
        (Some(band), _) => (band.low, band.high),
        (None, "at-least") => (1.0, f64::INFINITY),
        (None, _) => (0.0, 1.0),
    };
    let (width, height) = SIZE;
    let (from, to) = (at(low), at(high));
    let label = match &figure.band {
        Some(band) => format!("{ratio:.2}, expected {low:.2} to {high:.2}: {}", band.kind),
        None => format!("{ratio:.2}"),
    };
    html! {
        svg.ratio role="img" aria-label=(label) viewBox={ "0 0 " (width) " " (height) } {
            title { (label) }
            rect.within x=(from) y="4" width=(to - from) height="8" {}
            line.one x1=(at(1.0)) x2=(at(1.0)) y1="1" y2="15" {}
            circle class=(class(figure)) cx=(at(ratio)) cy="8" r="4" {}
        }
    }
}

/// The position of a ratio, on a logarithmic scale.
fn at(ratio: f64) -> f64 {
    let power = ratio.max(f64::MIN_POSITIVE).log2().clamp(-ENDS, ENDS);
    let place = SIZE.0 * (power + ENDS) / (2.0 * ENDS);
    (10.0 * place).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::at;

    #[test]
    fn a_ratio_has_its_place() {
        let places = [0.0, 0.125, 1.0, 2.0, 8.0, f64::INFINITY].map(at);
        assert_eq!(places, [0.0, 0.0, 60.0, 80.0, 120.0, 120.0]);
    }
}
