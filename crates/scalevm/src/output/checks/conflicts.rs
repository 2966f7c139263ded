//! The results of one VM's pairs, as text or JSON.

use checks::Frame;
use checks::conflicts::{Compared, Conflict, Examined, Group, Pair, Results, Use};
use serde_json::{Value, json};
use stats::count;
use std::collections::BTreeSet;

/// Prints all results; each conflict only if `in_full`.
pub fn print(results: &Results, json: bool, in_full: bool) {
    if json {
        print_json(results)
    } else {
        print_text(results, in_full)
    }
}

fn print_text(results: &Results, in_full: bool) {
    let [apart, page, tasks] = counts(results);
    println!(
        "{}: {} of {} commutative pairs that share no page are conflict-free, {} of {} on one page \
         of a file, {} of {} of tasks that sleep",
        results.preset.name, apart.1, apart.0, page.1, page.0, tasks.1, tasks.0
    );
    for (line, pairs) in results.lines() {
        let meet = if pairs == 1 {
            "pair meets"
        } else {
            "pairs meet"
        };
        println!("  {pairs:>4} {meet} in {line}");
    }
    if in_full {
        print_known(results);
        let shown = results
            .commutative()
            .filter(|result| !result.conflicts.is_empty())
            .filter(|result| {
                let compared = results.compared(result);
                compared.known.is_empty() || !compared.unknown.is_empty()
            });
        shown.for_each(print_pair);
        for result in results
            .pairs
            .iter()
            .filter(|result| !result.pair.commutes())
        {
            println!(
                "  not counted: {}: {}",
                title(&result.pair),
                result.pair.why()
            );
        }
    }
}

/// Pairs that commute, and those of them without a conflict, by group.
fn counts(results: &Results) -> [(usize, usize); 3] {
    [Group::Apart, Group::OnePage, Group::Tasks].map(|group| results.counts(group))
}

/// Names the known conflicts, and those of them that are gone.
fn print_known(results: &Results) {
    let names = |lines: BTreeSet<String>| Vec::from_iter(lines).join(", ");
    for result in results.commutative() {
        let compared = results.compared(result);
        let title = title(&result.pair);
        if !compared.known.is_empty() {
            println!("  known: {title}: {}", names(compared.known));
        }
        if !compared.gone.is_empty() {
            let gone = names(compared.gone);
            println!("  GONE: {title}: known to meet in {gone}, and did not");
        }
    }
    for line in results.never_met() {
        println!("  GONE: pairs are known to meet in {line}, and none did");
    }
}

fn print_json(results: &Results) {
    for result in &results.pairs {
        println!("{}", pair_json(results, result));
    }
    let [apart, page, tasks] = counts(results);
    let counts = |(all, free)| json!({"commutative": all, "free": free});
    let line = json!({
        "record": "summary", "vm": results.preset.name,
        "commutative": apart.0 + page.0 + tasks.0, "free": apart.1 + page.1 + tasks.1,
        "apart": counts(apart), "one_page": counts(page), "tasks": counts(tasks),
        "as_known": results.is_as_known(),
        "lines": results.lines().iter().map(|(line, pairs)| json!({"line": line, "pairs": pairs}))
            .collect::<Vec<_>>(),
    });
    println!("{line}");
}

fn pair_json(results: &Results, result: &Examined) -> Value {
    let Pair {
        first,
        second,
        sharing,
        placement,
    } = result.pair;
    let conflict = |conflict: &Conflict| {
        let uses = conflict.uses.iter().map(|used| {
            json!({
                "operation": used.operation.name(), "reads": used.reads, "writes": used.writes,
                "sites": used.sites,
            })
        });
        json!({"line": conflict.what, "uses": uses.collect::<Vec<_>>()})
    };
    let compared = if result.pair.commutes() {
        results.compared(result)
    } else {
        Compared::default()
    };
    json!({
        "record": "pair", "vm": results.preset.name, "first": first.name(),
        "second": second.name(), "by": sharing.name(), "regions": placement.name(),
        "commutes": result.pair.commutes(), "why": result.pair.why(),
        "conflicts": result.conflicts.iter().map(conflict).collect::<Vec<_>>(),
        "known": compared.known, "gone": compared.gone,
    })
}

fn title(pair: &Pair) -> String {
    let Pair {
        first,
        second,
        sharing,
        placement,
    } = pair;
    let (first, second) = (first.name(), second.name());
    match pair.group() {
        Group::Tasks => format!("{first} and {second}, {}", sharing.name()),
        _ => format!(
            "{first} and {second}, {}, regions {}",
            sharing.name(),
            placement.name()
        ),
    }
}

fn print_pair(result: &Examined) {
    println!("  {}:", title(&result.pair));
    for conflict in &result.conflicts {
        println!("    {}", conflict.what);
        conflict.uses.iter().for_each(print_use);
    }
}

fn print_use(used: &Use) {
    let (reads, writes) = (count(used.reads, "read"), count(used.writes, "write"));
    println!("      {}: {reads}, {writes}", used.operation.name());
    for Frame { function, place } in &used.sites {
        println!("        {function}  {place}");
    }
}
