//! More call sites and more classes than the tables have room for: nothing is lost
//! but the detail. (A process of its own: the tables stay full.)

use hosted::Hosted;
use machine::Tasks;
use std::panic::Location;
use sync::lock_class;
use sync::watch::{
    Acquired, Attempt, ClassState, Kind, LockClass, LockProfile, MAX_CLASSES, MAX_SITES, Nesting,
    Observer, Order, classes, order, profile,
};

lock_class!(Crowd = "crowd");

/// A class made at run time.
struct Late;

impl LockClass for Late {
    const NAME: &'static str = "late";
    const NESTING: Nesting = Nesting::Never;
    fn state() -> &'static ClassState {
        Box::leak(Box::new(ClassState::of::<Late>()))
    }
}

fn attempt(class: &'static ClassState, site: &'static Location<'static>) -> Attempt {
    Attempt {
        class,
        lock: 1,
        kind: Kind::Exclusive,
        may_sleep: false,
        nested: false,
        site,
    }
}

#[test]
fn what_finds_no_room_is_counted_together() {
    profile::of(Hosted::anchor()).start(1).expect("memory");
    let here = Location::caller();
    // Copies have distinct addresses, like call sites.
    let places = vec![*here; 1 << 16].leak();
    let acquire_at = |site| {
        <LockProfile as Observer<Hosted>>::acquired(&attempt(Crowd::state(), site), Acquired::Free);
    };
    let sites = (0..MAX_SITES + 100).map(|i| &places[i * 40_503 % places.len()]);
    let files = || {
        let rows = profile::of(Hosted::anchor()).report();
        rows.into_iter().map(|row| row.file)
    };
    // In a table that is a quarter full many sites hash to the same slot, and all find a slot.
    sites.clone().take(MAX_SITES / 4).for_each(acquire_at);
    assert!(files().eq([file!()]), "a site without a line");

    profile::of(Hosted::anchor()).reset();
    sites.clone().for_each(acquire_at);
    let mut rows = profile::of(Hosted::anchor()).report();
    rows.sort_by_key(|row| row.file);
    let [rest, known] = rows.as_slice() else {
        panic!("{rows:?}");
    };
    assert_eq!([rest.class, known.class], ["crowd"; 2]);
    assert_eq!([rest.file, known.file], ["", file!()]);
    assert_eq!(rest.acquisitions + known.acquisitions, sites.len() as u64);
    assert!(known.acquisitions <= MAX_SITES as u64);
    assert!(known.acquisitions > MAX_SITES as u64 * 9 / 10);

    profile::of(Hosted::anchor()).reset();
    let many: Vec<_> = (0..MAX_CLASSES + 10).map(|_| Late::state()).collect();
    for class in &many {
        <LockProfile as Observer<Hosted>>::acquired(&attempt(class, here), Acquired::Free);
    }
    assert_eq!(classes().count(), MAX_CLASSES - 1);
    assert_eq!(many.last().map(|class| class.id()), Some(0));
    let rows = profile::of(Hosted::anchor()).report();
    let total: u64 = rows.iter().map(|row| row.acquisitions).sum();
    assert_eq!(total, many.len() as u64);
    assert!(rows.iter().any(|row| row.class.is_empty()));

    // A class without a number is not checked, but its locks are recorded as held and released.
    let (first, last) = (many[0], many[MAX_CLASSES + 9]);
    for class in [first, last] {
        <Order as Observer<Hosted>>::before(&attempt(class, here));
        <Order as Observer<Hosted>>::acquired(&attempt(class, here), Acquired::Unknown);
    }
    assert_eq!(order::held::<Hosted>(), 2);
    for class in [last, first] {
        <Order as Observer<Hosted>>::releasing(class, 1, &mut ());
    }
    assert_eq!(order::held::<Hosted>(), 0);
}
