//! Presets by name.

use baselines::selected::Preset;
use std::collections::HashSet;

#[test]
fn names_are_read_back() {
    for preset in Preset::ALL {
        assert_eq!(preset.to_string().parse(), Ok(preset));
        assert!(!preset.description().is_empty() && !preset.source().is_empty());
    }
    let names: HashSet<_> = Preset::ALL.map(Preset::name).into();
    assert_eq!(names.len(), Preset::ALL.len());
}

#[test]
fn no_two_presets_are_the_same_system() {
    let policies = |p: Preset| {
        (
            p.design(),
            p.account(),
            p.locks(),
            p.keeping(),
            p.queueing(),
            p.unlocked(),
            p.pv_locks(),
            p.pv_chunks(),
        )
    };
    let systems: Vec<_> = Preset::ALL.map(policies).into();
    for (i, system) in systems.iter().enumerate() {
        assert!(!systems[..i].contains(system), "{:?}", Preset::ALL[i]);
    }
}

#[test]
fn unknown_names_get_a_suggestion() {
    let nearest = |name: &str| name.parse::<Preset>().unwrap_err().nearest;
    assert_eq!(nearest("freebsd-dj"), Some(Preset::FreebsdDi));
    assert_eq!(nearest("freebsd_epoch"), Some(Preset::FreebsdEpoch));
    assert_eq!(nearest("lockless-di"), Some(Preset::FreebsdLocklessDi));
    assert_eq!(nearest("big-lock"), Some(Preset::OpenbsdBiglock));
    assert_eq!(nearest("pvh"), Some(Preset::FreebsdPvh));
    assert_eq!(nearest("linux-3.0-rc1"), Some(Preset::Linux30Rc2));
    assert_eq!(nearest("ScaleVM"), Some(Preset::Scalevm));
    assert_eq!(nearest("solaris"), None);
    assert_eq!(nearest(""), None);
    let message = "freebsd-epok".parse::<Preset>().unwrap_err().to_string();
    assert_eq!(
        message,
        "unknown preset 'freebsd-epok'; did you mean 'freebsd-epoch'?"
    );
    let message = "windows".parse::<Preset>().unwrap_err().to_string();
    assert!(message.ends_with(
        "; there are freebsd-pvh, freebsd-di, freebsd-11, freebsd-epoch, freebsd-lockless-di, freebsd-numa, \
         freebsd-obm-only, freebsd-obm, freebsd-14, openbsd-biglock, openbsd-unlocked, openbsd-7.6, linux-2.6.39, \
         linux-2.6.39-ra, linux-3.0-rc2, linux-3.0-fixes, linux-4.15, linux-5.15, linux-6.12, scalevm"
    ));
}
