//! The format, the built-in machines, distances and derived machines.

use super::*;

fn freebsd() -> MachineProfile {
    MachineProfile::named("freebsd-96").expect("built in")
}

/// The error for the text of `freebsd-96` with `from` replaced by `to`.
fn refusal(from: &str, to: &str) -> String {
    let text = freebsd().to_toml();
    assert!(text.contains(from), "{from}");
    let error = MachineProfile::parse(&text.replacen(from, to, 1), "m.toml").expect_err(to);
    let error = error.to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

#[test]
fn every_built_in_machine_is_sound_and_named_as_its_file() {
    let all = MachineProfile::all();
    assert_eq!(all.len(), 7);
    for profile in all {
        profile.check().expect("sound");
        assert_eq!(
            MachineProfile::named(&profile.name).expect("known"),
            profile
        );
        for (key, source) in &profile.sources {
            assert!(source.len() >= 5, "{}: {key}: {source}", profile.name);
        }
    }
    let error = MachineProfile::named("freebsd-69").expect_err("unknown");
    assert!(error.to_string().contains("freebsd-96, pc-16c32t"));
}

#[test]
fn shapes_are_those_of_the_machines() {
    let shapes: Vec<_> = MachineProfile::all()
        .iter()
        .map(|p| p.topology.shape())
        .collect();
    let known = [
        "2x24x2", "1x16x2", "1x16x1", "4x10x2", "8x10x2", "8x6x1", "2x64x2",
    ];
    assert_eq!(shapes, known);
    assert_eq!(freebsd().cpus(), 96);
}

#[test]
fn text_is_read_back_as_written() {
    for profile in MachineProfile::all() {
        for profile in profile.corners().into_iter().chain([profile]) {
            let text = profile.to_toml();
            // A file of its own has costs of its own.
            let written = MachineProfile {
                costs: profile.name.clone(),
                ..profile
            };
            let read = MachineProfile::parse(&text, "x").expect("sound");
            assert_eq!(read, written, "{text}");
        }
    }
    let mut odd = freebsd();
    odd.about = "quotes \" and \\ and ’".into();
    odd.transfer.sibling = 1;
    odd.kernel.wake = 1_000_000_000_000;
    odd.core.smt = 0.5 + f64::EPSILON;
    odd.core.clocks = Clocks(vec![(1, 3.7), (24, 2.0)]);
    assert_eq!(
        MachineProfile::parse(&odd.to_toml(), "x").expect("sound"),
        odd
    );
}

#[test]
fn times_are_picoseconds() {
    let profile = freebsd();
    assert_eq!(profile.transfer.sibling, 7_600);
    assert_eq!(profile.transfer.hops, [134_000]);
    assert_eq!(profile.transfer.invalidate_per_sharer, 83);
}

#[test]
fn cpus_are_numbered_as_linux_does() {
    let profile = freebsd();
    let place = |cpu| {
        let place = profile.place(cpu);
        (place.socket, place.core, place.thread)
    };
    let ends = [0, 23, 24, 47, 48, 71, 72, 95].map(place);
    let expected = [(0, 0), (0, 23), (1, 0), (1, 23)];
    let both = [0, 1].map(|thread| expected.map(|(socket, core)| (socket, core, thread)));
    assert_eq!(ends[..], both.concat());
    let epyc = MachineProfile::named("epyc-256").expect("built in");
    assert_eq!(epyc.place(128 + 64 + 7).cluster, 1);
}

#[test]
fn distances_have_their_costs_both_ways() {
    let epyc = MachineProfile::named("epyc-256").expect("built in");
    let cases = [
        (0, Class::SameThread, epyc.core.hit),
        (128, Class::Sibling, 8_000),
        (3, Class::Cluster, 24_500),
        (131, Class::Cluster, 24_500),
        (4, Class::Socket, 122_000),
        (64, Class::Hops(1), 265_000),
        (192, Class::Hops(1), 265_000),
    ];
    for (cpu, class, cost) in cases {
        assert_eq!(
            (epyc.distance(0, cpu), epyc.distance(cpu, 0)),
            (class, class)
        );
        assert_eq!((epyc.latency(0, cpu), epyc.latency(cpu, 0)), (cost, cost));
    }
    let xeon = MachineProfile::named("xeon-8s").expect("built in");
    assert_eq!(xeon.distance(0, 40), Class::Hops(1), "opposite");
    assert_eq!(xeon.distance(0, 20), Class::Hops(2));
    assert!(Class::Socket < Class::Hops(1) && Class::Hops(1) < Class::Hops(2));
    let occupancy = &xeon.transfer.read_occupancy;
    assert_eq!(occupancy.at(Class::Hops(2)), occupancy.hops[1]);
}

#[test]
fn a_bad_number_is_refused_with_its_line_and_key() {
    let sibling = "sibling = { value = 7.6, source";
    let line = |text: &str| format!("m.toml:{}: ", 1 + line_of(text));
    for (value, why) in [
        ("0", "from 0.001 ns"),
        ("-7.6", "from 0.001 ns"),
        ("nan", "finite"),
        ("inf", "finite"),
        ("1e300", "to a second"),
        ("\"7.6\"", "not a number"),
        ("0x7", "not a number"),
    ] {
        let error = refusal(sibling, &format!("sibling = {{ value = {value}, source"));
        assert!(error.starts_with(&line("sibling = ")), "{error}");
        assert!(
            error.contains("`transfer.sibling`") && error.contains(why),
            "{error}"
        );
    }
}

#[test]
fn a_bad_file_is_refused_with_its_key() {
    for (from, to, key) in [
        ("sibling = {", "sbling = {", "`transfer.sbling`"),
        ("[kernel]", "[kernle]", "`kernle.allocate`"),
        ("name = \"freebsd-96\"\n", "", "`name` is missing"),
        ("name = \"freebsd-96\"", "name = \"\"", "`name`"),
        ("name = ", "nmae = ", "`nmae`"),
        (
            "[kernel]",
            "[kernel]\nextra = { value = 1, source = \"x\" }",
            "`kernel.extra`",
        ),
        ("[kernel]", "[kernel]\nextra = 1", "`kernel.extra`"),
        (
            "\nsibling = {",
            "\n# sibling = {",
            "`transfer.sibling` is missing",
        ),
        ("value = 7.6, source", "value = 7.6, sauce", "`source`"),
        (
            "value = 7.6, source",
            "value = 7.6, unit = 1, source",
            "`unit`",
        ),
        ("value = 7.6, source", "source", "`value`"),
        ("sibling = {", "sibling = [", "m.toml:"),
        ("[0.2, 0.3, 0.5]", "[0.2, 0.3, 0.6]", "`transfer.legs`"),
        ("[0.2, 0.3, 0.5]", "[0.5, 0.5]", "`transfer.legs`"),
        ("\"first-come\"", "\"last-come\"", "`transfer.arbitration`"),
        ("\"first-come\"", "\"nearest\"", "`bypasses`"),
        (
            "\"first-come\"",
            "\"first-come\", bypasses = 1",
            "`bypasses`",
        ),
        ("smt = { value = 0.62", "smt = { value = 1.5", "`core.smt`"),
        (
            "clocks = { value = []",
            "clocks = { value = [[1]]",
            "`core.clocks`",
        ),
        (
            "clocks = { value = []",
            "clocks = { value = [[1, 0]]",
            "`core.clocks`",
        ),
        (
            "clocks = { value = []",
            "clocks = { value = [[4, 3], [2, 3]]",
            "`core.clocks`",
        ),
    ] {
        let error = refusal(from, to);
        assert!(error.contains(key), "{to}: {error}");
    }
}

/// The number of lines of `freebsd-96` before the first one that begins with `start`.
fn line_of(start: &str) -> usize {
    let text = freebsd().to_toml();
    let found = text.lines().position(|line| line.starts_with(start));
    found.expect("such a line")
}

#[test]
fn impossible_topologies_are_refused() {
    for (from, to, key) in [
        (
            "sockets = { value = 2",
            "sockets = { value = 0",
            "`topology.sockets`",
        ),
        (
            "sockets = { value = 2",
            "sockets = { value = 200",
            "`topology.sockets`",
        ),
        (
            "sockets = { value = 2",
            "sockets = { value = 3",
            "`topology.hops`",
        ),
        (
            "cluster = { value = 24",
            "cluster = { value = 7",
            "`topology.cluster`",
        ),
        ("[[0, 1], [1, 0]]", "[[0, 1], [2, 0]]", "`topology.hops`"),
        ("[[0, 1], [1, 0]]", "[[0, 2], [2, 0]]", "`topology.hops`"),
        ("[[0, 1], [1, 0]]", "[[1, 1], [1, 0]]", "`topology.hops`"),
        ("[[0, 1], [1, 0]]", "[[0, 0], [0, 0]]", "`topology.hops`"),
        ("[[0, 1], [1, 0]]", "[[0, 1]]", "`topology.hops`"),
        (
            "[[0, 1], [1, 0]]",
            "[[0, 256], [256, 0]]",
            "`topology.hops`",
        ),
    ] {
        let error = refusal(from, to);
        assert!(error.contains(key), "{to}: {error}");
    }
    let mut profile = freebsd();
    profile.transfer.read_occupancy.hops.clear();
    let error = profile.check().expect_err("a class without a cost");
    assert!(error.to_string().contains("`transfer.read_occupancy`"));
}

#[test]
fn another_shape_keeps_the_costs() {
    let profile = freebsd().with_topology(8, 10, 2).expect("possible");
    assert_eq!((profile.name.as_str(), profile.cpus()), ("8x10x2", 160));
    assert_eq!(profile.topology.cluster, 10);
    assert_eq!(profile.transfer, freebsd().transfer);
    assert!(profile.topology.hops[0][1..].iter().all(|&hops| hops == 1));
    let xeon = MachineProfile::named("xeon-8s").expect("built in");
    let larger = xeon.with_topology(16, 30, 2).expect("possible");
    assert_eq!(
        larger.topology.hops[0][..10],
        [0, 1, 2, 2, 2, 2, 2, 2, 1, 2]
    );
    let half = xeon.with_topology(4, 10, 1).expect("possible");
    assert_eq!(half.topology.hops[0], xeon.topology.hops[0][..4]);
    let epyc = MachineProfile::named("epyc-256").expect("built in");
    let clusters = [(8, 4), (10, 2), (3, 1)];
    for (cores, cluster) in clusters {
        let profile = epyc.with_topology(2, cores, 1).expect("possible");
        assert_eq!(profile.topology.cluster, cluster);
    }
}

#[test]
fn shapes_that_no_machine_has_are_refused() {
    let desktop = MachineProfile::named("pc-16c32t").expect("built in");
    for (sockets, cores, threads) in [(0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1025, 1)] {
        let refused = desktop.with_topology(sockets, cores, threads);
        assert!(refused.is_err(), "{sockets}x{cores}x{threads}");
    }
    let huge = usize::MAX / 2;
    assert!(desktop.with_topology(huge, huge, huge).is_err());
    let error = desktop
        .with_topology(2, 8, 2)
        .expect_err("no second socket");
    assert!(error.to_string().contains("one socket"), "{error}");
}

#[test]
fn corners_differ_in_what_nobody_publishes() {
    for profile in MachineProfile::all() {
        let corners = profile.corners();
        for (index, corner) in corners.iter().enumerate() {
            corner.check().expect("sound");
            let earlier = &corners[..index];
            let same =
                |one: &MachineProfile| one.transfer == corner.transfer || one.name == corner.name;
            assert!(!earlier.iter().any(same), "{}", corner.name);
            assert_eq!(
                (&corner.core, &corner.topology),
                (&profile.core, &profile.topology)
            );
        }
    }
    let named = freebsd().corners().map(|corner| corner.name);
    assert_eq!(named[0], "freebsd-96 (20/30/50, first-come)");
    assert_eq!(named[3], "freebsd-96 (35/35/30, nearest)");
}

#[test]
fn a_file_is_loaded_or_named_in_the_error() {
    let path = std::env::temp_dir().join(format!("profile-{}.toml", std::process::id()));
    fs::write(&path, freebsd().to_toml()).expect("written");
    let loaded = MachineProfile::load(&path);
    fs::remove_file(&path).expect("removed");
    assert_eq!(loaded.expect("sound"), freebsd());
    let error = MachineProfile::load(&path).expect_err("gone").to_string();
    assert!(error.starts_with(&path.display().to_string()), "{error}");
}

#[test]
fn a_time_is_set_with_its_source() {
    let mut profile = freebsd();
    profile.set_time("kernel.wake", 5, "a test".into());
    assert_eq!(profile.kernel.wake, 5);
    let entries = profile.entries();
    let wake = entries.iter().find(|entry| entry.key == "kernel.wake");
    let wake = wake.expect("an entry");
    assert_eq!(
        (wake.value.as_str(), wake.source.as_str()),
        ("0.005", "a test")
    );
    assert_eq!(entries.len(), profile.sources.len());
}

#[test]
#[should_panic(expected = "`core.smt` is not a time")]
fn only_times_are_set_as_times() {
    freebsd().set_time("core.smt", 5, "a test".into());
}
