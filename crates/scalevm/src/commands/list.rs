//! `scalevm list`.

use crate::catalog::{self, Entry, PRESETS, SYSTEMS};
use crate::cli::ListArgs;
use crate::harness::Failure;
use crate::tasks::places;

/// Prints what there is to choose from.
pub fn run(args: &ListArgs) -> Result<u8, Failure> {
    let cores = places::cores().map_err(Failure::start("CPU affinity"))?;
    let topology = places::shape(&cores);
    let about = "this computer, as far as this process may use it";
    let sections: [(&str, Vec<(&str, &str)>); 5] = [
        (
            "workloads",
            workloads::all()
                .iter()
                .map(|workload| (workload.name, workload.description))
                .collect(),
        ),
        ("systems", pairs(SYSTEMS)),
        ("presets", pairs(PRESETS)),
        (
            "locks",
            catalog::locks()
                .map(|entry| (entry.name, entry.about))
                .collect(),
        ),
        ("topologies", vec![(&topology, about)]),
    ];
    for (index, (kind, entries)) in sections.iter().enumerate() {
        if args.json {
            let kind = kind.strip_suffix('s').unwrap_or(kind);
            let kind = if kind == "topologie" {
                "topology"
            } else {
                kind
            };
            for (name, about) in entries {
                let line = serde_json::json!({ "kind": kind, "name": name, "about": about });
                println!("{line}");
            }
            continue;
        }
        if index > 0 {
            println!();
        }
        println!("{kind}");
        for (name, about) in entries {
            println!("  {name:<20} {about}");
        }
    }
    Ok(0)
}

fn pairs(entries: &'static [Entry]) -> Vec<(&'static str, &'static str)> {
    entries
        .iter()
        .map(|entry| (entry.name, entry.about))
        .collect()
}
