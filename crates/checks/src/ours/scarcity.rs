//! Scarcity in a VM: frames that are withheld, refusals, stores that fail.

use super::calls::Space;
use machine::{Frame, Platform};
use oracle::address::Range;
use oracle::step::{Advice, Backing, Call, LockFlag, MapFlag, Scarcity};
use std::sync::{Arc, Mutex, PoisonError};
use vm::pager::MemoryPager;
use vm::{Best, Content, Flags, Region, Usage, Vm};

/// A store that keeps pages in this process's memory.
pub type Store<M> = Arc<MemoryPager<M>>;

/// The supplies that can be made scarce.
pub struct Supplies<M: Platform> {
    pub vm: Arc<Vm<Best<M>>>,
    pub files: Vec<Store<M>>,
    pub swap: Store<M>,
    /// Frames withheld from the VM. They are not pages, which reclaim would consider.
    pub withheld: Arc<Mutex<Vec<Frame>>>,
}

impl<M: Platform> Supplies<M> {
    /// Withholds frames so that only `left` are free, if there are that many; with [`usize::MAX`]
    /// withholds none.
    pub fn leave(&self, left: usize) {
        let withheld = self.withheld.lock();
        let mut withheld = withheld.unwrap_or_else(PoisonError::into_inner);
        let (machine, frames) = (self.vm.machine(), self.vm.frames());
        withheld
            .drain(..)
            // SAFETY: the frames were given out, and nothing uses them.
            .for_each(|frame| unsafe { frames.free(machine, frame, Content::Any) });
        let surplus = frames.free_count().saturating_sub(left);
        // SAFETY: the frames are the machine's.
        withheld
            .extend((0..surplus).map_while(|_| unsafe { frames.allocate(machine, Content::Any) }));
    }

    /// Lets something fail until the answer is dropped.
    pub fn fail(self: Arc<Self>, scarcity: Scarcity) -> Failing<M> {
        match scarcity {
            Scarcity::Frame(nth) => self.vm.frames().fail_from(nth),
            Scarcity::File(nth) => self.files.iter().for_each(|file| file.fail_after(nth)),
            Scarcity::Swap(nth) => self.swap.fail_after(nth),
            Scarcity::Left(_) => {}
        }
        Failing(self)
    }
}

/// A supply that fails, until this is dropped.
pub struct Failing<M: Platform>(Arc<Supplies<M>>);

impl<M: Platform> Drop for Failing<M> {
    fn drop(&mut self) {
        let Failing(supplies) = self;
        supplies.vm.frames().fail_after(0);
        supplies.files.iter().for_each(|file| file.fail_after(0));
        supplies.swap.fail_after(0);
    }
}

/// The state that a refused call must leave unchanged.
#[derive(Clone, PartialEq)]
pub struct Promised {
    regions: Vec<Region>,
    usage: Usage,
    reserved: u64,
}

impl Promised {
    pub fn by<M: Platform>(space: &Space<M>) -> Self {
        Promised {
            regions: space.regions().expect("regions"),
            usage: space.stats().usage,
            reserved: space.vm().committed(),
        }
    }
}

/// Returns true if a refused call may have changed the promised state.
pub fn may_change(call: &Call) -> bool {
    matches!(
        call,
        Call::Lock(_) | Call::Remap(_) | Call::Load(..) | Call::Store(..) | Call::Dump(_)
    )
}

/// Returns true if a call (by real addresses) may copy private pages of files: when memory is
/// short it is undefined which pages it has copied.
pub fn makes_copies<M: Platform>(space: &Space<M>, call: &Call) -> bool {
    let is_copied = |region: &Region| region.object.is_some() && !region.flags.has(Flags::SHARED);
    let copied_in = |range: Range| {
        let start = range.start.offset;
        let end = start.saturating_add(range.bytes);
        let mut regions = space.regions().expect("regions").into_iter();
        regions.any(|region| {
            let (from, to) = (region.range.start as u64, region.range.end as u64);
            is_copied(&region) && from < end && start < to
        })
    };
    match call {
        Call::Map(map) => {
            let brings = map.flags.has(MapFlag::Populate) || map.flags.has(MapFlag::Locked);
            brings && !map.shared && map.backing != Backing::Anonymous
        }
        Call::Lock(range) | Call::Advise(range, Advice::PopulateWrite) => copied_in(*range),
        Call::Protect(range, prot) => prot.write && copied_in(*range),
        Call::LockAll(flags) => {
            flags.has(LockFlag::Future) || space.regions().expect("regions").iter().any(is_copied)
        }
        _ => false,
    }
}
