//! Charts, the features of their curves, and the numbers.

use super::percent;
use crate::page::{Basis, Chart, Series, on_machine};
use crate::plot;
use maud::{Markup, html};
use stats::metric;

pub fn section(charts: &[Chart]) -> Markup {
    html! {
        section #curves aria-labelledby="curves-title" {
            h2 #curves-title { "Curves" }
            @for (index, chart) in charts.iter().enumerate() { (one(chart, index)) }
        }
    }
}

fn one(chart: &Chart, index: usize) -> Markup {
    let machine = on_machine(chart.machine.as_deref());
    let title = format!("{}{machine}, {}", chart.workload, chart.mode.name());
    html! {
        article {
            h3 { (title) }
            @if plot::is_curve(chart) {
                (figure(chart, index))
                (features(chart))
            }
            @if chart.left_out > 0 {
                p { (chart.left_out) " curves of files between the first and the last are not \
                                      shown." }
            }
            (numbers(chart))
        }
    }
}

/// Both scales are on the page; radio buttons choose one without a script.
fn figure(chart: &Chart, index: usize) -> Markup {
    let wide = plot::is_wide(chart);
    let name = format!("scale-{index}");
    let label = plot::label(chart);
    html! {
        figure.curve {
            fieldset.scale {
                legend { "Scale" }
                label { input type="radio" name=(name) value="linear" checked[!wide]; " linear" }
                label { input type="radio" name=(name) value="log" checked[wide]; " logarithmic" }
            }
            div.scroll.plot role="region" tabindex="0" aria-label={ "Chart: " (chart.workload) } {
                div.linear { (plot::svg(chart, false, &label)) }
                div.log { (plot::svg(chart, true, &label)) }
            }
            // For screens too narrow for names next to the lines.
            ul.legend { @for series in &chart.series { li { (swatch(series)) (series.name) } } }
            figcaption { (chart.unit) " over tasks. " (band(chart))
                @if chart.series.iter().any(|one| one.law.is_some()) { " Dashed: the Universal \
                    Scalability Law, fitted." }
                " Rings: the peak, the knee (dashed) and where a collapse begins (bold)."
            }
        }
    }
}

/// Explains the bands.
fn band(chart: &Chart) -> &'static str {
    let dots = chart.series.iter().flat_map(|one| &one.dots);
    let banded = dots.filter(|dot| dot.band.is_some());
    match banded.map(|dot| dot.basis).max() {
        None => "No bands: there is one value at each point.",
        Some(Basis::Runs) => "Bands: 95 % interval of the mean over runs (Student's t).",
        Some(Basis::Seeds) => {
            "Bands: 95 % interval of the mean over simulated runs, a seed each (Student's t)."
        }
        Some(Basis::Samples) => {
            "Bands: 95 % interval of the mean over the samples of one run (Student's t): they show \
             the noise within that run, not how far another run may lie."
        }
    }
}

/// The table of the curves' features.
const FEATURES: [&str; 9] = [
    "Peak",
    "at tasks",
    "Flat",
    "Knee at",
    "Collapse from",
    "Lowest, of peak",
    "USL contention σ",
    "USL coherence κ",
    "USL R²",
];

fn features(chart: &Chart) -> Markup {
    html! {
        div.scroll role="region" tabindex="0"
            aria-label={ "Features of the curves: " (chart.workload) } {
            table {
                caption { "Features of the curves" }
                thead { tr {
                    th scope="col" { "On" }
                    @for name in FEATURES {
                        th.number scope="col" { (name) }
                    }
                } }
                tbody { @for series in &chart.series { (row(series)) } }
            }
        }
    }
}

fn row(series: &Series) -> Markup {
    const NONE: &str = "–";
    let shape = series.shape.as_ref();
    let law = series.law.as_ref();
    let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.into());
    let flat = shape
        .map(|shape| shape.plateau)
        .filter(|(from, to)| from != to);
    let collapse = shape.and_then(|shape| shape.collapse.map(|collapse| (shape, collapse)));
    let cells = [
        shape.map(|shape| metric(shape.peak.throughput)),
        shape.map(|shape| shape.peak.cpus.to_string()),
        flat.map(|(from, to)| format!("{from}–{to}")),
        shape
            .and_then(|shape| shape.knee)
            .map(|knee| knee.cpus.to_string()),
        collapse.map(|(_, one)| one.from.cpus.to_string()),
        collapse.map(|(shape, one)| percent(one.lowest.throughput / shape.peak.throughput)),
        law.map(|law| format!("{:.4}", law.sigma)),
        law.map(|law| format!("{:.6}", law.kappa)),
        law.and_then(|law| law.r_squared)
            .map(|fit| format!("{fit:.3}")),
    ];
    html! {
        tr {
            th scope="row" { (swatch(series)) (series.name) }
            @for cell in cells { td.number { (or_none(cell)) } }
        }
    }
}

fn swatch(series: &Series) -> Markup {
    html! { span class={ "swatch s" (series.colour % plot::COLOURS) } aria-hidden="true" {} }
}

fn numbers(chart: &Chart) -> Markup {
    html! {
        details open[!plot::is_curve(chart)] {
            summary { "The numbers" }
            div.scroll role="region" tabindex="0"
                aria-label={ "The numbers of " (chart.workload) } {
                table {
                    caption { (chart.unit) ", mean and 95 % interval" }
                    thead { tr {
                        th scope="col" { "On" }
                        @for name in ["Tasks", "Mean", "Low", "High", "Per task"] {
                            th.number scope="col" { (name) }
                        }
                        th scope="col" { "Mean of" }
                    } }
                    tbody {
                        @for series in &chart.series {
                            @for dot in &series.dots {
                                tr {
                                    th scope="row" { (swatch(series)) (series.name) }
                                    td.number { (dot.tasks) }
                                    td.number { (metric(dot.rate)) }
                                    @let ends = dot.band.map(|(low, high)| [low, high].map(metric));
                                    @for end in [0, 1] {
                                        td.number {
                                            @match &ends { Some(ends) => (ends[end]), None => "–" }
                                        }
                                    }
                                    td.number { (metric(dot.rate / f64::from(dot.tasks))) }
                                    td { (of(dot.count, dot.basis)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn of(count: usize, basis: Basis) -> String {
    let noun = match (basis, count) {
        (Basis::Runs, 1) => "run",
        (Basis::Runs, _) => "runs",
        (Basis::Seeds, 1) => "seed",
        (Basis::Seeds, _) => "seeds",
        (Basis::Samples, 1) => "sample of one run",
        (Basis::Samples, _) => "samples of one run",
    };
    format!("{count} {noun}")
}
