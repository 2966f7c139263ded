//! The systems by name: a table with one row each, written as its differences from another row.
//!
//! A preset of your own is one more constant: `Preset(&Row { name: "mine", ..*Preset::LINUX_5_15.0
//! })` with what is different.

mod names;

pub use names::UnknownPreset;

use crate::freebsd::{ListLocks, Order};
use crate::linux::{Batches, Fixes};
use crate::openbsd::{BigLock, Unlocked};
use crate::selected::{Account, AnyKernel, Design, Gates, PvLocks, Queueing, Selected};
use core::fmt;
use core::hash::{Hash, Hasher};
use core::ops::Deref;
use ipc::Own;
use machine::{Machine, Platform};
use vm::system::{ForkTables, FramePools, ObjectPages};
use vm::{FAULT_AROUND, Options};

/// A named choice of each part: a system of the case studies, a present one, or `vm`'s own designs.
/// Presets with the same name are equal.
#[derive(Clone, Copy, Debug)]
pub struct Preset(pub &'static Row);

/// The parts of a preset.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The name, as on the command line.
    pub name: &'static str,
    /// One line on its design.
    pub description: &'static str,
    /// The design's origin.
    pub source: &'static str,
    /// Its delayed invalidation.
    pub invalidation: Design,
    pub swap: Account,
    /// The locks of its spaces, and the records of regions that it keeps.
    pub gate: Gates,
    /// Where its pages queue.
    pub queues: Queueing,
    /// The pools of its free frames. FreeBSD before memory domains has one for all CPUs, Linux
    /// before 6.7 one for each node. Since 6.7 a CPU's lists grow until they hardly use the pool;
    /// FreeBSD 14 and OpenBSD have models of their own ([`crate::freebsd`], [`crate::openbsd`]).
    pub frame_pools: FramePools,
    /// Its locks of PV lists.
    pub pv_locks: PvLocks,
    /// The order of its PV chunks; `None` for PV tables.
    pub pv_chunks: Option<Order>,
    /// How it forks page tables.
    pub fork_tables: ForkTables,
    /// How it finds the mappings of an object's page: the presets of real systems by an entry for
    /// each mapping, or by the substitute for Linux's counts.
    pub object_pages: ObjectPages,
    /// Pages of a file that its read fault maps: Linux's since 3.15 `fault_around_bytes`, FreeBSD's
    /// four to either side (`vm_fault_prefault`), OpenBSD's three before and four behind
    /// (`uvmadvice`).
    pub fault_around: usize,
    /// What runs without its kernel's lock; `None` if it has no such lock.
    pub unlocked: Option<Unlocked>,
    /// Its scheduler, on machines that take one.
    pub scheduler: Scheduling,
}

/// The schedulers of the systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduling {
    /// `vm`'s own choice, `sched::Best`.
    Own,
    /// FreeBSD 12's ULE.
    Ule,
    /// Linux 3.0's CFS.
    Cfs,
    /// OpenBSD 7.0's scheduler.
    OpenBsd,
}

impl Preset {
    /// All presets, each system's oldest first.
    pub const ALL: [Preset; 20] = [
        Self::FREEBSD_PVH,
        Self::FREEBSD_DI,
        Self::FREEBSD_11,
        Self::FREEBSD_EPOCH,
        Self::FREEBSD_LOCKLESS_DI,
        Self::FREEBSD_NUMA,
        Self::FREEBSD_OBM_ONLY,
        Self::FREEBSD_OBM,
        Self::FREEBSD_14,
        Self::OPENBSD_BIGLOCK,
        Self::OPENBSD_UNLOCKED,
        Self::OPENBSD_7_6,
        Self::LINUX_2_6_39,
        Self::LINUX_2_6_39_RA,
        Self::LINUX_3_0_RC2,
        Self::LINUX_3_0_FIXES,
        Self::LINUX_4_15,
        Self::LINUX_5_15,
        Self::LINUX_6_12,
        Self::SCALEVM,
    ];

    /// FreeBSD 10: one lock over every change of a mapping.
    pub const FREEBSD_PVH: Preset = Preset(&Row {
        name: "freebsd-pvh",
        description: "\
            one reader/writer lock held across every removal and mapping; removal by the reverse \
            map stops them all",
        source: "FreeBSD/amd64 10.4 pmap, before b4ddfd (2016)",
        invalidation: Design::Pvh,
        swap: Account::Mutex,
        gate: Gates::OneLock,
        queues: Queueing::Nowhere,
        frame_pools: FramePools::One,
        pv_locks: PvLocks::Shared(ListLocks::Hashed),
        pv_chunks: Some(Order::Chunks { domains: 1 }),
        fork_tables: ForkTables::Copied,
        object_pages: ObjectPages::Listed,
        fault_around: 8,
        unlocked: None,
        scheduler: Scheduling::Ule,
    });

    /// FreeBSD in May 2018: the "before" of case study 000.
    pub const FREEBSD_DI: Preset = Preset(&Row {
        name: "freebsd-di",
        description: "delayed invalidation: a list of open blocks, one mutex at start and finish",
        source: "case study 000; FreeBSD/amd64 pmap b4ddfd (2016) to r347695 (2019)",
        invalidation: Design::Di,
        ..*Self::FREEBSD_PVH.0
    });

    /// FreeBSD in May 2018 ([`Preset::FREEBSD_DI`]) with FreeBSD's own locks of a space.
    pub const FREEBSD_11: Preset = Preset(&Row {
        name: "freebsd-11",
        description: "as freebsd-di, with the map's sx and the pmap's mutex as FreeBSD builds them",
        source: "as freebsd-di; kern_sx.c",
        gate: Gates::SxMap,
        ..*Self::FREEBSD_DI.0
    });

    /// The experiment of case study 000.
    pub const FREEBSD_EPOCH: Preset = Preset(&Row {
        name: "freebsd-epoch",
        description: "\
            epochs in place of delayed invalidation: enter, exit, and a grace period to wait",
        source: "case study 000, the experiment",
        invalidation: Design::Epoch,
        ..*Self::FREEBSD_DI.0
    });

    /// FreeBSD today, and in March 2020: the "stock" of case study 002.
    pub const FREEBSD_LOCKLESS_DI: Preset = Preset(&Row {
        name: "freebsd-lockless-di",
        description: "\
            delayed invalidation: one list appended to by a 16-byte compare-and-swap; 256 locks \
            of PV lists, one list of PV chunks",
        source: "FreeBSD/amd64 pmap since r347695 (2019)",
        invalidation: Design::LocklessDi,
        swap: Account::Atomic,
        ..*Self::FREEBSD_DI.0
    });

    /// FreeBSD in March 2020 ([`Preset::FREEBSD_LOCKLESS_DI`]), built for NUMA.
    pub const FREEBSD_NUMA: Preset = Preset(&Row {
        name: "freebsd-numa",
        description: "\
            as freebsd-lockless-di, with a lock of PV lists for each 2 MiB and two lists of PV \
            chunks",
        source: "FreeBSD/amd64 pmap since r353149 (2019), option NUMA",
        frame_pools: FramePools::Node,
        pv_locks: PvLocks::Shared(ListLocks::PerRegion),
        pv_chunks: Some(Order::Chunks { domains: 2 }),
        ..*Self::FREEBSD_LOCKLESS_DI.0
    });

    /// Case study 002: one-byte mutexes only.
    pub const FREEBSD_OBM_ONLY: Preset = Preset(&Row {
        name: "freebsd-obm-only",
        description: "as freebsd-numa, but a one-byte mutex for each page's PV list",
        source: "case study 002, the patch",
        pv_locks: PvLocks::Own,
        ..*Self::FREEBSD_NUMA.0
    });

    /// Case study 002: one-byte mutexes, and no list of chunks.
    pub const FREEBSD_OBM: Preset = Preset(&Row {
        name: "freebsd-obm",
        description: "as freebsd-obm-only, and a list of pmaps in place of those of PV chunks",
        source: "case study 002, the patch",
        pv_chunks: Some(Order::Pmaps),
        ..*Self::FREEBSD_OBM_ONLY.0
    });

    /// FreeBSD in November 2023.
    pub const FREEBSD_14: Preset = Preset(&Row {
        name: "freebsd-14",
        description: "\
            as freebsd-numa, with objects and shadow chains, each under its lock; faults read \
            the map's sx; page queues by batches, free pages by domain",
        source: "FreeBSD/amd64 14.0 (November 2023), sys/vm, pmap with option NUMA, kern_sx.c",
        gate: Gates::FreeBsd,
        queues: Queueing::Batched,
        frame_pools: FramePools::Near,
        pv_chunks: Some(Order::Nodes),
        ..*Self::FREEBSD_NUMA.0
    });

    /// OpenBSD 7.0: the "before" of case study 003.
    pub const OPENBSD_BIGLOCK: Preset = Preset(&Row {
        name: "openbsd-biglock",
        description: "\
            calls and faults under one lock of the kernel; one queue of pages, one lock of the \
            sleep queues",
        source: "OpenBSD/arm64 7.0 (October 2021), uvm",
        invalidation: Design::Own,
        swap: Account::Own,
        gate: Gates::OpenBsd,
        queues: Queueing::Global,
        frame_pools: FramePools::Near,
        pv_locks: PvLocks::Own,
        pv_chunks: None,
        fork_tables: ForkTables::Copied,
        object_pages: ObjectPages::Listed,
        fault_around: 8,
        unlocked: Some(Unlocked::Nothing),
        scheduler: Scheduling::OpenBsd,
    });

    /// OpenBSD with faults unlocked, as measured in case study 003.
    pub const OPENBSD_UNLOCKED: Preset = Preset(&Row {
        name: "openbsd-unlocked",
        description: "\
            faults without the kernel's lock: rwlocks of objects and of families of amaps",
        source: "case study 003; OpenBSD/arm64 uvm of late 2021",
        unlocked: Some(Unlocked::Faults),
        ..*Self::OPENBSD_BIGLOCK.0
    });

    /// OpenBSD in October 2024.
    pub const OPENBSD_7_6: Preset = Preset(&Row {
        name: "openbsd-7.6",
        description: "\
            as openbsd-unlocked, with mmap, munmap, mprotect and sleeping without the kernel's \
            lock, which fork, exit, wait and break still take",
        source: "OpenBSD/amd64 7.6 (October 2024), uvm, syscalls.master, kern_synch.c",
        unlocked: Some(Unlocked::Mappings),
        ..*Self::OPENBSD_UNLOCKED.0
    });

    /// Linux in May 2011.
    pub const LINUX_2_6_39: Preset = Preset(&Row {
        name: "linux-2.6.39",
        description: "\
            VMAs with anon_vma chains, a family's lists under its root's spin lock; each fault \
            on a file writes the open file",
        source: "case study 004; Linux 2.6.39, mm/rmap.c and mm/mmap.c",
        invalidation: Design::Own,
        swap: Account::Own,
        gate: Gates::LinuxSpinLocks(Fixes::new(false, false)),
        queues: Queueing::Nowhere,
        frame_pools: FramePools::Node,
        pv_locks: PvLocks::Spinning,
        pv_chunks: None,
        fork_tables: ForkTables::Copied,
        object_pages: ObjectPages::Listed,
        fault_around: 1,
        unlocked: None,
        scheduler: Scheduling::Cfs,
    });

    /// Linux in May 2011 ([`Preset::LINUX_2_6_39`]) with the read-ahead fix.
    pub const LINUX_2_6_39_RA: Preset = Preset(&Row {
        name: "linux-2.6.39-ra",
        description: "as linux-2.6.39, but that faults leave the open file alone",
        source: "case study 004; Linux 2.6.39 with 207d04baa",
        gate: Gates::LinuxSpinLocks(Fixes::new(false, true)),
        ..*Self::LINUX_2_6_39.0
    });

    /// Linux with mutexes for its reverse map.
    pub const LINUX_3_0_RC2: Preset = Preset(&Row {
        name: "linux-3.0-rc2",
        description: "as linux-2.6.39-ra, with mutexes in place of the spin locks",
        source: "case study 004; Linux 3.0-rc2, with 2b575eb64 and 3d48ae45e",
        gate: Gates::LinuxMutexes(Fixes::new(false, true)),
        ..*Self::LINUX_2_6_39_RA.0
    });

    /// Linux in July 2011: mutexes for the reverse map, and one acquisition for a chain.
    pub const LINUX_3_0_FIXES: Preset = Preset(&Row {
        name: "linux-3.0-fixes",
        description: "as linux-3.0-rc2, with the root locked once for all of a region's lists",
        source: "case study 004; Linux 3.0, with bb4aa3967, eee2acbae and dd34739c0",
        gate: Gates::LinuxMutexes(Fixes::new(true, true)),
        ..*Self::LINUX_3_0_RC2.0
    });

    /// Linux in January 2018.
    pub const LINUX_4_15: Preset = Preset(&Row {
        name: "linux-4.15",
        description: "\
            as linux-5.15, but munmap takes pages away with mmap_sem still locked, the lists' \
            batches are smaller, and vm_committed_as has a spin lock",
        source: "Linux 4.15 (January 2018), mm/, kernel/locking/rwsem-xadd.c, lib/percpu_counter.c",
        swap: Account::CommittedAs,
        gate: Gates::LinuxRwsems(Fixes::new(true, true)),
        queues: Queueing::Lruvecs(Batches::V4_15),
        ..*Self::LINUX_5_15.0
    });

    /// Linux in October 2021.
    pub const LINUX_5_15: Preset = Preset(&Row {
        name: "linux-5.15",
        description: "\
            mmap_lock, which faults read, and the reverse map under rwsems that spin; lists of \
            pages by node, a control group's account",
        source: "Linux 5.15 (October 2021), mm/ and kernel/locking/rwsem.c",
        gate: Gates::LinuxRwsems(Fixes::V5_15),
        queues: Queueing::Lruvecs(Batches::V5_15),
        fault_around: 16,
        ..*Self::LINUX_3_0_FIXES.0
    });

    /// Linux in November 2024.
    pub const LINUX_6_12: Preset = Preset(&Row {
        name: "linux-6.12",
        description: "\
            as linux-5.15, with faults under a VMA's own lock, found in a tree without the map's",
        source: "Linux 6.12 (November 2024), mm/ and kernel/locking/rwsem.c",
        gate: Gates::LinuxRwsems(Fixes::ALL),
        queues: Queueing::Lruvecs(Batches::V6_12),
        frame_pools: FramePools::Near,
        ..*Self::LINUX_5_15.0
    });

    /// `vm`'s own designs.
    pub const SCALEVM: Preset = Preset(&Row {
        name: "scalevm",
        description: "\
            epoch sections named in the page: wait only for blocks that hold it; swap reserved \
            per CPU",
        source: "this project",
        invalidation: Design::Own,
        swap: Account::Own,
        gate: Gates::Slots,
        queues: Queueing::Nowhere,
        frame_pools: FramePools::Near,
        pv_locks: PvLocks::Own,
        pv_chunks: None,
        fork_tables: ForkTables::BEST,
        object_pages: ObjectPages::Attached,
        fault_around: FAULT_AROUND,
        unlocked: None,
        scheduler: Scheduling::Own,
    });
}

impl Preset {
    /// The options of a VM with this preset.
    pub fn options<M: Platform>(self) -> Options<Selected<M>> {
        Options {
            invalidation: self.invalidation,
            swap: self.swap,
            gate: self.gate,
            queues: self.queues,
            frame_pools: self.frame_pools,
            pv_locks: self.pv_locks,
            pv_chunks: self.pv_chunks,
            fork_tables: self.fork_tables,
            object_pages: self.object_pages,
            fault_around: self.fault_around,
            ..Options::default()
        }
    }

    /// How its tasks enter the kernel and sleep there. Called on a CPU of the machine.
    pub fn kernel<M: Machine>(self) -> AnyKernel<M> {
        match self.unlocked {
            Some(unlocked) => AnyKernel::BigLock(BigLock::new(unlocked)),
            None => AnyKernel::Own(Own::new()),
        }
    }
}

impl Deref for Preset {
    type Target = Row;

    fn deref(&self) -> &Row {
        self.0
    }
}

impl PartialEq for Preset {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Preset {}

impl Hash for Preset {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}
