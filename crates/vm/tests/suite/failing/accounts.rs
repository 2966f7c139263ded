//! Accounts that refuse: the limits of a space, and committed memory.
//!
//! An operation is tried in a new world with no page left in an account, then with one left, and so
//! on until it succeeds. After each refusal the space must be as it was. Whatever the end, each
//! limit must be exact: what the space does not use can be mapped, and not a page more.

use super::{Call, Told, World, on_a_cpu};
use crate::world::{P, pages};
use vm::{Error, Flags, Limit, Prot, Request, Usage};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Account {
    Committed,
    Limited(Limit),
}

const LIMITS: [Limit; 3] = [Limit::AddressSpace, Limit::Data, Limit::Locked];
/// Pages left where the account is another.
const PLENTY: u64 = 1 << 16;

/// Lets each account refuse `call`, which is not one that runs short of anything else; how often it
/// failed.
pub fn by_accounts<W: World>(call: &Call<'_, W>) -> u64 {
    let limited = LIMITS.map(Account::Limited).into_iter();
    let accounts = limited.chain([Account::Committed]);
    accounts.map(|account| by(account, call)).sum()
}

fn by<W: World>(account: Account, call: &Call<'_, W>) -> u64 {
    let (mut room, mut failures) = (0, 0);
    while on_a_cpu(|| attempt(account, room, call)).is_err() {
        failures += 1;
        room = (room + 1).max(room * 3 / 2);
    }
    failures
}

fn attempt<W: World>(account: Account, room: u64, call: &Call<'_, W>) -> Result<(), Error> {
    let what = format!("{account:?}, {room} pages");
    let world = W::new();
    for limit in LIMITS {
        let left = if account == Account::Limited(limit) {
            room
        } else {
            PLENTY
        };
        let bytes = (used(&world, limit) + left) as usize * P;
        world
            .space()
            .set_limit(limit, Some(bytes))
            .expect("a limit");
    }
    let mut taken = Vec::new();
    if account == Account::Committed {
        // All that there is, as far as a number of 32 bits tells; then `room` comes back.
        let parts = (0..32).rev().map(|bit| 1 << bit);
        let memory = |pages: u64| world.vm().shared_memory(pages * P as u64).ok();
        taken = parts.filter_map(memory).collect();
        let mut left = room * P as u64;
        for object in &taken {
            let part = left.min(object.size());
            object.set_size(object.size() - part).expect("smaller");
            left -= part;
        }
    }
    let before = Told::by(&world);
    let result = call(&world);
    if let Err(error) = result {
        let explained = match account {
            Account::Committed => matches!(error, Error::OverCommit { .. }),
            Account::Limited(Limit::Locked) => {
                error == Error::LockLimit || error == over(Limit::Locked)
            }
            Account::Limited(limit) => error == over(limit),
        };
        assert!(explained, "{what}: {error}");
        assert_eq!(Told::by(&world), before, "{what}");
        world.check_content(&what);
    }
    drop(taken);
    for limit in LIMITS {
        assert_exact(&world, limit, &what);
        // What the next one counts is mapped, too.
        world.space().set_limit(limit, None).expect("no limit");
    }
    world.tear_down(&what);
    result
}

fn over(limit: Limit) -> Error {
    Error::OverLimit(limit)
}

/// Pages that the space uses of what is limited, by its mappings.
fn used(world: &impl World, limit: Limit) -> u64 {
    let Usage {
        mapped,
        data,
        locked,
        ..
    } = world.space().stats().usage;
    match limit {
        Limit::AddressSpace => mapped,
        Limit::Data => data,
        Limit::Locked => locked,
        Limit::Stack => 0,
    }
}

/// The limit admits what the space does not use, and not a page more.
fn assert_exact(world: &impl World, limit: Limit, what: &str) {
    let space = world.space();
    let most = space.limit(limit).expect("it is set") / P;
    let left = most - used(world, limit) as usize;
    let (prot, flags) = match limit {
        Limit::Data => (Prot::READ_WRITE, Flags::NONE),
        Limit::Locked => (Prot::NONE, Flags::LOCKED.with(Flags::ON_FAULT)),
        _ => (Prot::NONE, Flags::NONE),
    };
    let map = |pages: usize| {
        let request = Request::anonymous(pages * P, prot).with(flags);
        space.map_as(&request)
    };
    assert!(map(left + 1).is_err(), "{what}: more than {limit:?} allows");
    if left > 0 {
        let at = map(left).unwrap_or_else(|error| panic!("{what}: {limit:?}: {error}"));
        space.unmap(pages(at, left)).expect("unmap");
    }
}
