//! A profile of the measured figures, on top of a built-in one.

use super::{Computer, Figure, Reading, shootdown};
use sim::profile::{Class, MachineProfile, PerClass};

/// This computer as a profile; numbers that `figures` lack are `base`'s. `on` names the measured
/// computer.
pub fn profile(
    name: &str,
    on: &str,
    computer: &Computer,
    figures: &[Figure],
    base: &MachineProfile,
) -> MachineProfile {
    let mut profile = base.clone();
    for source in profile.sources.values_mut() {
        *source = format!("{}, as this computer does not show it: {source}", base.name);
    }
    profile.name = name.to_owned();
    profile.costs = name.to_owned();
    shape(&mut profile, computer);
    profile.about = format!("{on}, {}", profile.topology.shape());
    for figure in figures {
        let said = source(figure, on);
        match figure.key {
            "transfer.hops" => {
                profile.transfer.hops = vec![figure.reading.picoseconds()];
                profile.sources.insert("transfer.hops".into(), said);
            }
            shootdown::WHOLE => divide(&mut profile, &figure.reading, &said),
            key => profile.set_time(key, figure.reading.picoseconds(), said),
        }
    }
    if computer.far.is_none() && computer.near.is_some() {
        let cluster = profile.transfer.cluster;
        let said = "one cluster a socket: as `cluster`".to_owned();
        profile.set_time("transfer.socket", cluster, said);
    }
    read_occupancy(&mut profile, base);
    profile
}

fn shape(profile: &mut MachineProfile, computer: &Computer) {
    let topology = &mut profile.topology;
    topology.sockets = computer.sockets;
    topology.cores = computer.cores;
    topology.threads = computer.threads;
    topology.cluster = computer.cluster;
    let hops = |from, to| u8::from(from != to);
    let sockets = 0..computer.sockets;
    let row = |from| sockets.clone().map(|to| hops(from, to)).collect();
    topology.hops = sockets.clone().map(row).collect();
    for key in ["sockets", "cores", "threads"] {
        let source =
            "the CPUs that the measuring process might use; of cores that differ, the least";
        profile
            .sources
            .insert(format!("topology.{key}"), source.into());
    }
    let source = match computer.sockets {
        1 => "one socket",
        _ => "every other socket is taken for one hop away",
    };
    profile
        .sources
        .insert("topology.hops".into(), source.into());
    let source = "CPUs that share the last-level cache, from sysfs";
    profile
        .sources
        .insert("topology.cluster".into(), source.into());
}

fn source(figure: &Figure, on: &str) -> String {
    let Reading {
        low, high, rounds, ..
    } = figure.reading;
    let how = figure.how;
    format!("measured on {on}: {how}; median of {rounds}, quartiles {low:.1}–{high:.1} ns")
}

/// Divides a whole shootdown among its parts as they are in the profile so far.
fn divide(profile: &mut MachineProfile, whole: &Reading, said: &str) {
    let ipi = &profile.ipi;
    let parts = [
        ("ipi.send", ipi.send),
        ("ipi.per_target", ipi.per_target),
        ("ipi.deliver", ipi.deliver),
        ("ipi.handler", ipi.handler),
        ("ipi.acknowledge", ipi.acknowledge),
    ];
    let sum: u64 = parts.iter().map(|(_, part)| part).sum();
    for (key, part) in parts {
        let share = whole.times(part as f64 / sum as f64);
        let source = format!("an estimate, a share of the whole: {said}");
        profile.set_time(key, share.picoseconds(), source);
    }
}

/// The share of a transfer that `base` takes for serving a reader, of the transfers found.
fn read_occupancy(profile: &mut MachineProfile, base: &MachineProfile) {
    let (old, new) = (&base.transfer, &profile.transfer);
    let busy = &old.read_occupancy;
    let share = |class: Class, old: u64, new: u64| {
        let time = new as f64 * busy.at(class) as f64 / old as f64;
        time.round().clamp(1.0, 1e12) as u64
    };
    let hop = |(index, &new): (usize, &u64)| match old.hops.get(index) {
        Some(&old) => share(Class::Hops(index as u8 + 1), old, new),
        None => share(Class::Socket, old.socket, new),
    };
    let found = PerClass {
        sibling: share(Class::Sibling, old.sibling, new.sibling),
        cluster: share(Class::Cluster, old.cluster, new.cluster),
        socket: share(Class::Socket, old.socket, new.socket),
        hops: new.hops.iter().enumerate().map(hop).collect(),
    };
    profile.transfer.read_occupancy = found;
    let key = "transfer.read_occupancy";
    let source = base.sources.get(key).map_or("", String::as_str);
    let source = format!("the share of the transfer that {} has: {source}", base.name);
    profile.sources.insert(key.into(), source);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A computer whose pairs of CPUs matter only by their presence.
    fn computer(sockets: usize, cores: usize, cluster: usize) -> Computer {
        let pair = |there: bool| there.then_some((0, 1));
        Computer {
            sockets,
            cores,
            threads: 1,
            cluster,
            first: 0,
            sibling: None,
            near: pair(cluster > 1),
            far: pair(cores > cluster),
            remote: vec![(0, 1); sockets - 1],
        }
    }

    fn figures(keys: &[&'static str]) -> Vec<Figure> {
        let figure = |key: &&'static str| Figure::new(key, "a test", Reading::of([100.0]));
        keys.iter().map(figure).collect()
    }

    #[test]
    fn a_profile_comes_out_whatever_the_base_and_the_computer() {
        for base in MachineProfile::all() {
            for (computer, keys) in [
                (computer(1, 1, 1), &["core.hit"][..]),
                (computer(1, 4, 4), &["transfer.cluster", "ipi"]),
                (computer(2, 4, 2), &["transfer.socket", "transfer.hops"]),
                (computer(4, 3, 3), &["transfer.cluster", "transfer.hops"]),
            ] {
                let found = profile("here", "a CPU", &computer, &figures(keys), &base);
                found.check().expect("sound");
                let again = MachineProfile::parse(&found.to_toml(), "here").expect("sound");
                assert_eq!(again, found);
                assert_eq!(found.cpus(), computer.sockets * computer.cores);
            }
        }
    }

    #[test]
    fn what_was_measured_replaces_what_the_base_says() {
        let base = MachineProfile::named("freebsd-96").expect("built in");
        let keys = ["transfer.cluster", "transfer.hops", "kernel.wake"];
        let found = profile("here", "a CPU", &computer(2, 4, 4), &figures(&keys), &base);
        let MachineProfile {
            transfer,
            kernel,
            core,
            ..
        } = &found;
        assert_eq!((transfer.cluster, transfer.socket), (100_000, 100_000));
        assert_eq!((&transfer.hops[..], kernel.wake), (&[100_000][..], 100_000));
        assert_eq!(transfer.sibling, base.transfer.sibling);
        assert_eq!(core, &base.core);
        let busy = &transfer.read_occupancy;
        assert_eq!(busy.hops, [25_000], "a quarter, as the base has");
        assert_eq!(
            found.sources["kernel.wake"],
            "measured on a CPU: a test; median of 1, quartiles 100.0–100.0 ns"
        );
    }

    #[test]
    fn a_shootdown_is_divided_as_the_base_does() {
        let base = MachineProfile::named("freebsd-96").expect("built in");
        let found = profile(
            "here",
            "a CPU",
            &computer(1, 2, 2),
            &figures(&["ipi"]),
            &base,
        );
        let ipi = &found.ipi;
        let sum = ipi.send + ipi.per_target + ipi.deliver + ipi.handler + ipi.acknowledge;
        assert!(sum.abs_diff(100_000) < 5, "{sum}");
        assert!(ipi.deliver > ipi.handler && ipi.handler > ipi.send);
    }
}
