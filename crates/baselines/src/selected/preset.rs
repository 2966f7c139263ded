//! Systems by name.

use super::{Account, AnyKernel, Design, Keeping, Locks, PvLocks, Queueing, Selected};
use crate::freebsd::{ListLocks, Order};
use crate::linux::{Batches, Fixes};
use crate::openbsd::{BigLock, Unlocked};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;
use ipc::Own;
use machine::{Machine, Platform};
use vm::Options;
use vm::policy::{ForkTables, FramePools, ObjectPages};

/// A named choice of policies: a system of the case studies, today's, or our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Preset {
    /// FreeBSD 10: one lock over every change of a mapping.
    FreebsdPvh,
    /// FreeBSD in May 2018: the "before" of case study 000.
    FreebsdDi,
    /// [`Preset::FreebsdDi`] with FreeBSD's own locks of a space.
    Freebsd11,
    /// FreeBSD today, and in March 2020: the "stock" of case study 002.
    FreebsdLocklessDi,
    /// [`Preset::FreebsdLocklessDi`], built for NUMA.
    FreebsdNuma,
    /// Case study 002: one-byte mutexes only.
    FreebsdObmOnly,
    /// Case study 002: one-byte mutexes, and no list of chunks.
    FreebsdObm,
    /// The experiment of case study 000.
    FreebsdEpoch,
    /// FreeBSD in November 2023.
    Freebsd14,
    /// OpenBSD 7.0: the "before" of case study 003.
    OpenbsdBiglock,
    /// OpenBSD with faults unlocked, as measured in case study 003.
    OpenbsdUnlocked,
    /// OpenBSD in October 2024.
    Openbsd76,
    /// Linux in May 2011.
    Linux2639,
    /// [`Preset::Linux2639`] with the read-ahead fix.
    Linux2639Ra,
    /// Linux with mutexes for its reverse map.
    Linux30Rc2,
    /// Linux in July 2011: the mutexes, and one acquisition for a chain.
    Linux30Fixes,
    /// Linux in January 2018.
    Linux415,
    /// Linux in October 2021.
    Linux515,
    /// Linux in November 2024.
    Linux612,
    /// `vm`'s own designs.
    Scalevm,
}

impl Preset {
    /// All presets, each system's oldest first.
    pub const ALL: [Preset; 20] = [
        Preset::FreebsdPvh,
        Preset::FreebsdDi,
        Preset::Freebsd11,
        Preset::FreebsdEpoch,
        Preset::FreebsdLocklessDi,
        Preset::FreebsdNuma,
        Preset::FreebsdObmOnly,
        Preset::FreebsdObm,
        Preset::Freebsd14,
        Preset::OpenbsdBiglock,
        Preset::OpenbsdUnlocked,
        Preset::Openbsd76,
        Preset::Linux2639,
        Preset::Linux2639Ra,
        Preset::Linux30Rc2,
        Preset::Linux30Fixes,
        Preset::Linux415,
        Preset::Linux515,
        Preset::Linux612,
        Preset::Scalevm,
    ];

    /// The name, as on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Preset::FreebsdPvh => "freebsd-pvh",
            Preset::FreebsdDi => "freebsd-di",
            Preset::Freebsd11 => "freebsd-11",
            Preset::FreebsdLocklessDi => "freebsd-lockless-di",
            Preset::FreebsdNuma => "freebsd-numa",
            Preset::FreebsdObmOnly => "freebsd-obm-only",
            Preset::FreebsdObm => "freebsd-obm",
            Preset::FreebsdEpoch => "freebsd-epoch",
            Preset::Freebsd14 => "freebsd-14",
            Preset::OpenbsdBiglock => "openbsd-biglock",
            Preset::OpenbsdUnlocked => "openbsd-unlocked",
            Preset::Openbsd76 => "openbsd-7.6",
            Preset::Linux2639 => "linux-2.6.39",
            Preset::Linux2639Ra => "linux-2.6.39-ra",
            Preset::Linux30Rc2 => "linux-3.0-rc2",
            Preset::Linux30Fixes => "linux-3.0-fixes",
            Preset::Linux415 => "linux-4.15",
            Preset::Linux515 => "linux-5.15",
            Preset::Linux612 => "linux-6.12",
            Preset::Scalevm => "scalevm",
        }
    }

    /// One line on its design.
    pub const fn description(self) -> &'static str {
        match self {
            Preset::FreebsdPvh => {
                "one reader/writer lock held across every removal and mapping; removal by \
                 the reverse map stops them all"
            }
            Preset::FreebsdDi => {
                "delayed invalidation: a list of open blocks, one mutex at start and finish"
            }
            Preset::Freebsd11 => {
                "as freebsd-di, with the map's sx and the pmap's mutex as FreeBSD builds them"
            }
            Preset::FreebsdLocklessDi => {
                "delayed invalidation: one list appended to by a 16-byte compare-and-swap; 256 \
                 locks of PV lists, one list of PV chunks"
            }
            Preset::FreebsdNuma => {
                "as freebsd-lockless-di, with a lock of PV lists for each 2 MiB and two lists \
                 of PV chunks"
            }
            Preset::FreebsdObmOnly => {
                "as freebsd-numa, but a one-byte mutex for each page's PV list"
            }
            Preset::FreebsdObm => {
                "as freebsd-obm-only, and a list of pmaps in place of those of PV chunks"
            }
            Preset::FreebsdEpoch => {
                "epochs in place of delayed invalidation: enter, exit, and a grace period to wait"
            }
            Preset::Freebsd14 => {
                "as freebsd-numa, with objects and shadow chains, each under its lock; faults read the map's sx; page \
                 queues by batches, free pages by domain"
            }
            Preset::OpenbsdBiglock => {
                "calls and faults under one lock of the kernel; one queue of pages, one lock of \
                 the sleep queues"
            }
            Preset::OpenbsdUnlocked => {
                "faults without the kernel's lock: rwlocks of objects and of families of amaps"
            }
            Preset::Openbsd76 => {
                "as openbsd-unlocked, with mmap, munmap, mprotect and sleeping without the kernel's lock, which fork, exit, wait \
                 and break still take"
            }
            Preset::Linux2639 => {
                "VMAs with anon_vma chains, a family's lists under its root's spin lock; each fault \
                 on a file writes the open file"
            }
            Preset::Linux2639Ra => "as linux-2.6.39, but that faults leave the open file alone",
            Preset::Linux30Rc2 => "as linux-2.6.39-ra, with mutexes in place of the spin locks",
            Preset::Linux30Fixes => {
                "as linux-3.0-rc2, with the root locked once for all of a region's lists"
            }
            Preset::Linux415 => {
                "as linux-5.15, but munmap takes pages away with mmap_sem still locked, the lists' batches are smaller, and \
                 vm_committed_as has a spin lock"
            }
            Preset::Linux515 => {
                "mmap_lock, which faults read, and the reverse map under rwsems that spin; lists of pages by \
                 node, a control group's account"
            }
            Preset::Linux612 => {
                "as linux-5.15, with faults under a VMA's own lock, found in a tree without the map's"
            }
            Preset::Scalevm => {
                "epoch sections named in the page: wait only for blocks that hold it; swap \
                 reserved per CPU"
            }
        }
    }

    /// The design's origin.
    pub const fn source(self) -> &'static str {
        match self {
            Preset::FreebsdPvh => "FreeBSD/amd64 10.4 pmap, before b4ddfd (2016)",
            Preset::FreebsdDi => {
                "case study 000; FreeBSD/amd64 pmap b4ddfd (2016) to r347695 (2019)"
            }
            Preset::Freebsd11 => "as freebsd-di; kern_sx.c",
            Preset::FreebsdLocklessDi => "FreeBSD/amd64 pmap since r347695 (2019)",
            Preset::FreebsdNuma => "FreeBSD/amd64 pmap since r353149 (2019), option NUMA",
            Preset::FreebsdObmOnly | Preset::FreebsdObm => "case study 002, the patch",
            Preset::FreebsdEpoch => "case study 000, the experiment",
            Preset::Freebsd14 => {
                "FreeBSD/amd64 14.0 (November 2023), sys/vm, pmap with option NUMA, kern_sx.c"
            }
            Preset::OpenbsdBiglock => "OpenBSD/arm64 7.0 (October 2021), uvm",
            Preset::OpenbsdUnlocked => "case study 003; OpenBSD/arm64 uvm of late 2021",
            Preset::Openbsd76 => {
                "OpenBSD/amd64 7.6 (October 2024), uvm, syscalls.master, kern_synch.c"
            }
            Preset::Linux2639 => "case study 004; Linux 2.6.39, mm/rmap.c and mm/mmap.c",
            Preset::Linux2639Ra => "case study 004; Linux 2.6.39 with 207d04baa",
            Preset::Linux30Rc2 => "case study 004; Linux 3.0-rc2, with 2b575eb64 and 3d48ae45e",
            Preset::Linux30Fixes => {
                "case study 004; Linux 3.0, with bb4aa3967, eee2acbae and dd34739c0"
            }
            Preset::Linux415 => {
                "Linux 4.15 (January 2018), mm/, kernel/locking/rwsem-xadd.c, lib/percpu_counter.c"
            }
            Preset::Linux515 => "Linux 5.15 (October 2021), mm/ and kernel/locking/rwsem.c",
            Preset::Linux612 => "Linux 6.12 (November 2024), mm/ and kernel/locking/rwsem.c",
            Preset::Scalevm => "this project",
        }
    }

    /// The options of a VM with this preset.
    pub fn options<M: Platform>(self) -> Options<M, Selected> {
        Options {
            invalidation: self.design(),
            swap: self.account(),
            pv_locks: self.pv_locks(),
            pv_chunks: self.pv_chunks(),
            locking: self.locks(),
            regions: self.keeping(),
            queues: self.queueing(),
            frame_pools: self.frame_pools(),
            fork_tables: self.fork_tables(),
            object_pages: self.object_pages(),
            fault_around: self.fault_around(),
            ..Options::default()
        }
    }

    /// Whose its free frames are: FreeBSD's before memory domains are all CPUs', Linux's before 6.7 a node's. Since then lists
    /// of a CPU grow until the pool is hardly asked; FreeBSD 14 and OpenBSD have models of their own
    /// ([`crate::freebsd`], [`crate::openbsd`]).
    fn frame_pools(self) -> FramePools {
        match self {
            Preset::FreebsdPvh
            | Preset::FreebsdDi
            | Preset::Freebsd11
            | Preset::FreebsdLocklessDi
            | Preset::FreebsdEpoch => FramePools::One,
            Preset::FreebsdNuma
            | Preset::FreebsdObmOnly
            | Preset::FreebsdObm
            | Preset::Linux2639
            | Preset::Linux2639Ra
            | Preset::Linux30Rc2
            | Preset::Linux30Fixes
            | Preset::Linux415
            | Preset::Linux515 => FramePools::Node,
            Preset::Freebsd14
            | Preset::OpenbsdBiglock
            | Preset::OpenbsdUnlocked
            | Preset::Openbsd76
            | Preset::Linux612
            | Preset::Scalevm => FramePools::Near,
        }
    }

    /// How it forks page tables: the systems of the case studies copy them.
    fn fork_tables(self) -> ForkTables {
        match self {
            Preset::Scalevm => ForkTables::default(),
            _ => ForkTables::Copied,
        }
    }

    /// How it finds the mappings of an object's page: the systems of the case studies by entries for each,
    /// or by the substitute for their counts.
    fn object_pages(self) -> ObjectPages {
        match self {
            Preset::Scalevm => ObjectPages::default(),
            _ => ObjectPages::Listed,
        }
    }

    /// Pages of a file that its read fault maps: Linux's since 3.15 `fault_around_bytes`, FreeBSD's four to either side
    /// (`vm_fault_prefault`), OpenBSD's three before and four behind (`uvmadvice`).
    fn fault_around(self) -> usize {
        match self {
            Preset::Linux2639 | Preset::Linux2639Ra | Preset::Linux30Rc2 | Preset::Linux30Fixes => {
                1
            }
            Preset::FreebsdPvh
            | Preset::FreebsdDi
            | Preset::Freebsd11
            | Preset::FreebsdLocklessDi
            | Preset::FreebsdNuma
            | Preset::FreebsdObmOnly
            | Preset::FreebsdObm
            | Preset::FreebsdEpoch
            | Preset::Freebsd14
            | Preset::OpenbsdBiglock
            | Preset::OpenbsdUnlocked
            | Preset::Openbsd76 => 8,
            Preset::Linux415 | Preset::Linux515 | Preset::Linux612 | Preset::Scalevm => 16,
        }
    }

    /// How its tasks enter the kernel and sleep there. Called on a CPU of the machine.
    pub fn kernel<M: Machine>(self) -> AnyKernel<M> {
        match self.unlocked() {
            Some(unlocked) => AnyKernel::BigLock(BigLock::new(unlocked)),
            None => AnyKernel::Own(Own::new()),
        }
    }

    /// Its delayed invalidation.
    pub const fn design(self) -> Design {
        match self {
            Preset::FreebsdPvh => Design::Pvh,
            Preset::FreebsdDi | Preset::Freebsd11 => Design::Di,
            Preset::FreebsdLocklessDi
            | Preset::FreebsdNuma
            | Preset::FreebsdObmOnly
            | Preset::FreebsdObm
            | Preset::Freebsd14 => Design::LocklessDi,
            Preset::FreebsdEpoch => Design::Epoch,
            Preset::OpenbsdBiglock
            | Preset::OpenbsdUnlocked
            | Preset::Openbsd76
            | Preset::Linux2639
            | Preset::Linux2639Ra
            | Preset::Linux30Rc2
            | Preset::Linux30Fixes
            | Preset::Linux415
            | Preset::Linux515
            | Preset::Linux612
            | Preset::Scalevm => Design::Own,
        }
    }

    /// Its locks of PV lists.
    pub const fn pv_locks(self) -> PvLocks {
        match self {
            Preset::FreebsdPvh
            | Preset::FreebsdDi
            | Preset::Freebsd11
            | Preset::FreebsdEpoch
            | Preset::FreebsdLocklessDi => PvLocks::Shared(ListLocks::Hashed),
            Preset::FreebsdNuma | Preset::Freebsd14 => PvLocks::Shared(ListLocks::PerRegion),
            Preset::Linux2639
            | Preset::Linux2639Ra
            | Preset::Linux30Rc2
            | Preset::Linux30Fixes
            | Preset::Linux415
            | Preset::Linux515
            | Preset::Linux612 => PvLocks::Spinning,
            _ => PvLocks::Own,
        }
    }

    /// The order of its PV chunks; `None` for PV tables.
    pub const fn pv_chunks(self) -> Option<Order> {
        match self {
            Preset::FreebsdPvh
            | Preset::FreebsdDi
            | Preset::Freebsd11
            | Preset::FreebsdEpoch
            | Preset::FreebsdLocklessDi => Some(Order::Chunks { domains: 1 }),
            Preset::FreebsdNuma | Preset::FreebsdObmOnly => Some(Order::Chunks { domains: 2 }),
            Preset::Freebsd14 => Some(Order::Nodes),
            Preset::FreebsdObm => Some(Order::Pmaps),
            _ => None,
        }
    }

    /// Its swap account.
    pub const fn account(self) -> Account {
        match self {
            Preset::FreebsdPvh | Preset::FreebsdDi | Preset::Freebsd11 | Preset::FreebsdEpoch => {
                Account::Mutex
            }
            Preset::FreebsdLocklessDi
            | Preset::FreebsdNuma
            | Preset::FreebsdObmOnly
            | Preset::FreebsdObm
            | Preset::Freebsd14 => Account::Atomic,
            Preset::Linux415 => Account::CommittedAs,
            Preset::OpenbsdBiglock
            | Preset::OpenbsdUnlocked
            | Preset::Openbsd76
            | Preset::Linux2639
            | Preset::Linux2639Ra
            | Preset::Linux30Rc2
            | Preset::Linux30Fixes
            | Preset::Linux515
            | Preset::Linux612
            | Preset::Scalevm => Account::Own,
        }
    }

    /// The locks of its spaces.
    pub const fn locks(self) -> Locks {
        match self {
            Preset::Freebsd11 | Preset::Freebsd14 => Locks::SxMap,
            Preset::OpenbsdBiglock | Preset::OpenbsdUnlocked | Preset::Openbsd76 => Locks::VmMap,
            Preset::Linux2639
            | Preset::Linux2639Ra
            | Preset::Linux30Rc2
            | Preset::Linux30Fixes
            | Preset::Linux415 => Locks::MmapLock { downgrades: false },
            Preset::Linux515 | Preset::Linux612 => Locks::MmapLock { downgrades: true },
            Preset::Scalevm => Locks::PerSlot,
            _ => Locks::OneLock,
        }
    }

    /// The regions' records that it keeps.
    pub const fn keeping(self) -> Keeping {
        match self {
            Preset::Freebsd14 => Keeping::FreeBsd,
            Preset::OpenbsdBiglock | Preset::OpenbsdUnlocked | Preset::Openbsd76 => {
                Keeping::OpenBsd
            }
            Preset::Linux2639 => Keeping::LinuxSpinLocks(Fixes::new(false, false)),
            Preset::Linux2639Ra => Keeping::LinuxSpinLocks(Fixes::new(false, true)),
            Preset::Linux30Rc2 => Keeping::LinuxMutexes(Fixes::new(false, true)),
            Preset::Linux30Fixes => Keeping::LinuxMutexes(Fixes::new(true, true)),
            Preset::Linux415 | Preset::Linux515 => Keeping::LinuxRwsems(Fixes::new(true, true)),
            Preset::Linux612 => Keeping::LinuxRwsems(Fixes::ALL),
            _ => Keeping::Nothing,
        }
    }

    /// What does without the kernel's lock, if there is one.
    pub const fn unlocked(self) -> Option<Unlocked> {
        match self {
            Preset::OpenbsdBiglock => Some(Unlocked::Nothing),
            Preset::OpenbsdUnlocked => Some(Unlocked::Faults),
            Preset::Openbsd76 => Some(Unlocked::Mappings),
            _ => None,
        }
    }

    /// Where its pages queue.
    pub const fn queueing(self) -> Queueing {
        match self {
            Preset::Freebsd14 => Queueing::Batched,
            Preset::OpenbsdBiglock | Preset::OpenbsdUnlocked | Preset::Openbsd76 => {
                Queueing::Global
            }
            Preset::Linux415 => Queueing::Lruvecs(Batches::V4_15),
            Preset::Linux515 => Queueing::Lruvecs(Batches::V5_15),
            Preset::Linux612 => Queueing::Lruvecs(Batches::V6_12),
            _ => Queueing::Nowhere,
        }
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        let found = Preset::ALL.into_iter().find(|preset| preset.name() == name);
        found.ok_or_else(|| UnknownPreset {
            name: name.to_string(),
            nearest: nearest(name),
        })
    }
}

/// No preset has this name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPreset {
    /// The requested name.
    pub name: String,
    /// The preset whose name is most like it, if one is.
    pub nearest: Option<Preset>,
}

impl fmt::Display for UnknownPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown preset '{}'", self.name)?;
        if let Some(nearest) = self.nearest {
            return write!(f, "; did you mean '{nearest}'?");
        }
        f.write_str("; there are")?;
        for (i, preset) in Preset::ALL.iter().enumerate() {
            write!(f, "{} {preset}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl core::error::Error for UnknownPreset {}

/// The preset whose name, or its part after the system's, is within a third of its length of edits
/// from `name`.
fn nearest(name: &str) -> Option<Preset> {
    let distance = |preset: Preset| {
        let full = preset.name();
        let short = full.split_once('-').map_or(full, |(_, short)| short);
        let candidates = [full, short].map(|known| (edits(known, name), known.len()));
        candidates
            .into_iter()
            .filter(|&(edits, length)| edits * 3 <= length.max(3))
            .min()
    };
    Preset::ALL
        .into_iter()
        .filter_map(|preset| Some((distance(preset)?, preset)))
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, preset)| preset)
}

/// How many bytes must be inserted, removed or replaced to turn `a` into `b` (Levenshtein), case
/// aside.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(!x.eq_ignore_ascii_case(&y));
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
