//! Presets by name.

use baselines::linux::Fixes;
use baselines::selected::{Gates, Selected};
use baselines::{Preset, Row};
use hosted::Hosted;
use machine::{PAGE_SIZE, VaRange};
use std::collections::HashSet;
use vm::{Error, Options, Prot, Space, Vm};

#[test]
fn names_are_read_back() {
    for preset in Preset::ALL {
        assert_eq!(preset.to_string().parse(), Ok(preset));
        assert!(!preset.description.is_empty() && !preset.source.is_empty());
    }
    let names: HashSet<_> = Preset::ALL.map(|preset| preset.name).into();
    assert_eq!(names.len(), Preset::ALL.len());
}

#[test]
fn no_two_presets_are_the_same_system() {
    let parts = |p: Preset| {
        (
            p.invalidation,
            p.swap,
            p.gate,
            p.queues,
            p.unlocked,
            p.pv_locks,
            p.pv_chunks,
        )
    };
    let systems: Vec<_> = Preset::ALL.map(parts).into();
    for (i, system) in systems.iter().enumerate() {
        assert!(!systems[..i].contains(system), "{:?}", Preset::ALL[i]);
    }
}

#[test]
fn unknown_names_get_a_suggestion() {
    let nearest = |name: &str| name.parse::<Preset>().unwrap_err().nearest;
    assert_eq!(nearest("freebsd-dj"), Some(Preset::FREEBSD_DI));
    assert_eq!(nearest("freebsd_epoch"), Some(Preset::FREEBSD_EPOCH));
    assert_eq!(nearest("lockless-di"), Some(Preset::FREEBSD_LOCKLESS_DI));
    assert_eq!(nearest("big-lock"), Some(Preset::OPENBSD_BIGLOCK));
    assert_eq!(nearest("pvh"), Some(Preset::FREEBSD_PVH));
    assert_eq!(nearest("linux-3.0-rc1"), Some(Preset::LINUX_3_0_RC2));
    assert_eq!(nearest("ScaleVM"), Some(Preset::SCALEVM));
    assert_eq!(nearest("solaris"), None);
    assert_eq!(nearest(""), None);
    let message = "freebsd-epok".parse::<Preset>().unwrap_err().to_string();
    assert_eq!(
        message,
        "unknown preset 'freebsd-epok'; did you mean 'freebsd-epoch'?"
    );
    let message = "windows".parse::<Preset>().unwrap_err().to_string();
    assert!(message.ends_with(
        "; there are freebsd-pvh, freebsd-di, freebsd-11, freebsd-epoch, freebsd-lockless-di, \
         freebsd-numa, freebsd-obm-only, freebsd-obm, freebsd-14, openbsd-biglock, \
         openbsd-unlocked, openbsd-7.6, linux-2.6.39, linux-2.6.39-ra, linux-3.0-rc2, \
         linux-3.0-fixes, linux-4.15, linux-5.15, linux-6.12, scalevm"
    ));
}

/// A system of one's own is one row that gives the differences.
#[test]
fn a_preset_of_ones_own_is_a_row() {
    const MINE: Preset = Preset(&Row {
        name: "linux-5.15-without-downgrade",
        gate: Gates::LinuxRwsems(Fixes::new(true, true)),
        ..*Preset::LINUX_5_15.0
    });
    assert!(!Preset::ALL.contains(&MINE));
    let options: Options<Selected<Hosted>> = MINE.options();
    assert_eq!(options.gate, Gates::LinuxRwsems(Fixes::new(true, true)));
    assert_eq!(options.queues, Preset::LINUX_5_15.queues);
    let machine = Hosted::with_memory(1, 4 << 20).expect("memory");
    machine.attach(0);
    let vm = Vm::with_options(machine, options).expect("memory for the VM");
    let space = Space::new(&vm).expect("a space");
    space.activate();
    let page = VaRange::sized(
        space.map(PAGE_SIZE, Prot::READ_WRITE).expect("map"),
        PAGE_SIZE,
    );
    space.store(page.start, 1).expect("store");
    space.unmap(page).expect("unmap");
    assert!(matches!(space.load(page.start), Err(Error::Segv(_))));
}
