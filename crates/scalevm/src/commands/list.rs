//! `scalevm list`.

use crate::cli::ListArgs;
use baselines::Preset;
use bench::tasks::places;
use bench::{Failure, On};
use lockbench::registry::ROWS;
use sim::profile::MachineProfile;

/// Something to choose.
struct Item {
    name: String,
    about: String,
    /// Sockets × cores × threads of a machine.
    shape: Option<String>,
}

/// Prints the available choices.
pub fn run(args: &ListArgs) -> Result<u8, Failure> {
    let cores = places::cores().map_err(Failure::start("CPU affinity"))?;
    let here = item(
        &places::shape(&cores),
        "this computer, as far as this process may use it",
    );
    let workloads = workloads::all().iter();
    let systems = On::ALL.iter().map(|on| item(on.name(), on.about()));
    let presets = Preset::ALL.iter();
    let presets = presets.map(|preset| item(preset.name, preset.description));
    let locks = ROWS.iter().filter(|row| row.ours);
    let locks = locks.map(|row| item(row.name, row.about));
    let sections: [(&str, &str, Vec<Item>); 6] = [
        (
            "workloads",
            "workload",
            workloads
                .map(|one| item(one.name, one.description))
                .collect(),
        ),
        ("systems", "system", systems.collect()),
        ("presets", "preset", presets.collect()),
        ("locks", "lock", locks.collect()),
        (
            "machines",
            "machine",
            MachineProfile::all().into_iter().map(machine).collect(),
        ),
        ("topologies", "topology", vec![here]),
    ];
    for (index, (title, kind, items)) in sections.iter().enumerate() {
        if args.json {
            items
                .iter()
                .for_each(|item| println!("{}", json(kind, item)));
            continue;
        }
        if index > 0 {
            println!();
        }
        println!("{title}");
        for Item { name, about, shape } in items {
            let shape = shape
                .as_ref()
                .map_or(String::new(), |shape| format!("{shape}: "));
            println!("  {name:<20} {shape}{about}");
        }
    }
    Ok(0)
}

fn item(name: &str, about: &str) -> Item {
    Item {
        name: name.to_owned(),
        about: about.to_owned(),
        shape: None,
    }
}

fn machine(profile: MachineProfile) -> Item {
    Item {
        shape: Some(profile.topology.shape()),
        name: profile.name,
        about: profile.about,
    }
}

fn json(kind: &str, Item { name, about, shape }: &Item) -> serde_json::Value {
    let mut line = serde_json::json!({ "kind": kind, "name": name, "about": about });
    if let Some(shape) = shape {
        line["shape"] = shape.as_str().into();
    }
    line
}
