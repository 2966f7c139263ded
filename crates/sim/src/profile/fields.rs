//! The list of a profile file's fields. Reading, writing and checking all walk it, so they cannot
//! disagree.

use super::{Arbitration, Clocks, MachineProfile, PerClass};

/// A field of a profile, by the kind of its value.
pub(super) enum Field<'a> {
    /// 1 or more.
    Count(&'a mut usize),
    /// Hops between sockets.
    Hops(&'a mut Vec<Vec<u8>>),
    /// Picoseconds, at least one; nanoseconds in the file.
    Time(&'a mut u64),
    /// Several times; empty for a machine of one socket.
    Times(&'a mut Vec<u64>),
    /// A time for each distance.
    PerClass(&'a mut PerClass),
    /// Shares whose sum is 1.
    Legs(&'a mut [f64; 3]),
    /// The order of service at a contended line.
    Arbitration(&'a mut Arbitration),
    /// Clocks by busy cores.
    Clocks(&'a mut Clocks),
    /// A number from the first bound to the second.
    Number(&'a mut f64, f64, f64),
}

/// All fields by dotted key, in the order of the file.
#[rustfmt::skip] // a table
pub(super) fn fields(profile: &mut MachineProfile) -> Vec<(&'static str, Field<'_>)> {
    use Field::{Count, Hops, Legs, Number, Time, Times};
    let MachineProfile { topology, transfer, core, kernel, ipi, memory, .. } = profile;
    vec![
        ("topology.sockets", Count(&mut topology.sockets)),
        ("topology.cores", Count(&mut topology.cores)),
        ("topology.threads", Count(&mut topology.threads)),
        ("topology.cluster", Count(&mut topology.cluster)),
        ("topology.hops", Hops(&mut topology.hops)),
        ("transfer.sibling", Time(&mut transfer.sibling)),
        ("transfer.cluster", Time(&mut transfer.cluster)),
        ("transfer.socket", Time(&mut transfer.socket)),
        ("transfer.hops", Times(&mut transfer.hops)),
        ("transfer.legs", Legs(&mut transfer.legs)),
        ("transfer.arbitration", Field::Arbitration(&mut transfer.arbitration)),
        ("transfer.read_occupancy", Field::PerClass(&mut transfer.read_occupancy)),
        ("transfer.invalidate_per_sharer", Time(&mut transfer.invalidate_per_sharer)),
        ("core.hit", Time(&mut core.hit)),
        ("core.rmw", Time(&mut core.rmw)),
        ("core.fence", Time(&mut core.fence)),
        ("core.pause", Time(&mut core.pause)),
        ("core.store_buffer", Count(&mut core.store_buffer)),
        ("core.smt", Number(&mut core.smt, 0.5, 1.0)),
        ("core.instruction", Time(&mut core.instruction)),
        ("core.clocks", Field::Clocks(&mut core.clocks)),
        ("kernel.syscall", Time(&mut kernel.syscall)),
        ("kernel.fault", Time(&mut kernel.fault)),
        ("kernel.block", Time(&mut kernel.block)),
        ("kernel.wake", Time(&mut kernel.wake)),
        ("kernel.allocate", Time(&mut kernel.allocate)),
        ("kernel.yield_now", Time(&mut kernel.yield_now)),
        ("kernel.switch", Time(&mut kernel.switch)),
        ("kernel.idle_exit", Time(&mut kernel.idle_exit)),
        ("ipi.send", Time(&mut ipi.send)),
        ("ipi.per_target", Time(&mut ipi.per_target)),
        ("ipi.deliver", Time(&mut ipi.deliver)),
        ("ipi.handler", Time(&mut ipi.handler)),
        ("ipi.acknowledge", Time(&mut ipi.acknowledge)),
        ("ipi.broadcast", Number(&mut ipi.broadcast, 0.0, 1e6)),
        ("memory.zero_page", Time(&mut memory.zero_page)),
        ("memory.zero_socket_gbps", Number(&mut memory.zero_socket_gbps, 0.001, 1e6)),
        ("memory.copy_page", Time(&mut memory.copy_page)),
        ("memory.walk", Time(&mut memory.walk)),
        ("memory.tlb_flush_page", Time(&mut memory.tlb_flush_page)),
        ("memory.tlb_flush_all", Time(&mut memory.tlb_flush_all)),
    ]
}

/// The shortest broadcast, in nanoseconds: longer than CPUs may run ahead of each other.
const SHORTEST_BROADCAST: f64 = 100.0;

/// The longest time: a second, in picoseconds.
pub(super) const LONGEST: u64 = 1_000_000_000_000;

impl Field<'_> {
    /// Checks this field by itself.
    pub(super) fn check(&self) -> Result<(), String> {
        match self {
            Field::Count(count) => in_range(**count as f64, 1.0, 1e6),
            Field::Hops(_) | Field::Arbitration(_) => Ok(()),
            Field::Time(time) => check_time(**time),
            Field::Times(times) => times.iter().copied().try_for_each(check_time),
            Field::PerClass(times) => {
                let near = [times.sibling, times.cluster, times.socket];
                let mut all = near.into_iter().chain(times.hops.iter().copied());
                all.try_for_each(check_time)
            }
            Field::Legs(legs) => {
                legs.iter().try_for_each(|&leg| in_range(leg, 0.001, 1.0))?;
                in_range(legs.iter().sum(), 1.0 - 1e-6, 1.0 + 1e-6)
                    .map_err(|_| "the legs do not add up to 1".to_owned())
            }
            Field::Clocks(clocks) => clocks.check(),
            Field::Number(number, least, most) => in_range(**number, *least, *most),
        }
    }
}

/// Checks every field, then the conditions on them together; names the key.
pub(super) fn check(profile: &MachineProfile) -> Result<(), (&'static str, String)> {
    for (key, field) in fields(&mut profile.clone()) {
        field.check().map_err(|reason| (key, reason))?;
    }
    if (f64::MIN_POSITIVE..SHORTEST_BROADCAST).contains(&profile.ipi.broadcast) {
        let reason = format!("neither 0 nor {SHORTEST_BROADCAST} ns or more");
        return Err(("ipi.broadcast", reason));
    }
    let distances = profile.transfer.hops.len();
    profile.topology.check(distances)?;
    let classes = profile.transfer.read_occupancy.hops.len();
    if classes != distances {
        let reason = format!("{classes} costs for sockets, but `transfer.hops` has {distances}");
        return Err(("transfer.read_occupancy", reason));
    }
    Ok(())
}

fn check_time(time: u64) -> Result<(), String> {
    in_range(time as f64 / 1e3, 0.001, LONGEST as f64 / 1e3)
}

pub(super) fn in_range(number: f64, least: f64, most: f64) -> Result<(), String> {
    // Written so that a NaN is refused too.
    if (least..=most).contains(&number) {
        Ok(())
    } else {
        Err(format!("{number} is not between {least} and {most}"))
    }
}
