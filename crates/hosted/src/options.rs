//! Options from which a machine is made.

use crate::arena::Arena;
use crate::{Hosted, mmu};
use core::ops::Range;
use machine::soft::Oracle;
use machine::{CpuRange, Frame, MAX_CPUS, PAGE_SIZE, WORDS_PER_FRAME, pte};
use std::io;
use std::sync::atomic::Ordering;

/// The shape of a machine.
#[derive(Clone, Debug)]
pub struct Options {
    /// CPUs, 1 to [`machine::MAX_CPUS`].
    pub cpus: usize,
    /// Bytes of memory, rounded up to whole frames.
    pub memory: usize,
    /// Frames that are not handed over, such as holes and the firmware's memory. An access to one
    /// ends the process by a segmentation fault.
    pub reserved: Vec<Range<u32>>,
    /// The number of address-space tags, 1 to 65,536.
    pub asids: usize,
    /// True if the upper half of each root table is the kernel's. A CPU that activates a root
    /// without those entries panics, where a real one would be lost.
    pub kernel_half: bool,
    /// True if the machine watches the frames' owners, and panics on the CPU that uses a
    /// translation to a freed frame ([`machine::soft::Oracle`]). It costs two loads for each access
    /// of a task, and two bytes for each frame.
    pub watched: bool,
}

impl Options {
    /// A machine that hands over all of its memory, with all tags, watched.
    pub const fn new(cpus: usize, memory: usize) -> Self {
        Options {
            cpus,
            memory,
            reserved: Vec::new(),
            asids: 1 << u16::BITS,
            kernel_half: false,
            watched: true,
        }
    }
}

fn invalid<T>(text: String) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, text))
}

impl Hosted {
    /// A machine of `cpus` CPUs and `bytes` of memory, rounded up to whole frames, which watches
    /// its frames ([`Options::watched`]).
    ///
    /// The memory is zero and costs nothing until it is touched. Each CPU has a TLB of 1,536
    /// entries, 12-way (24 KiB of the host's memory).
    ///
    /// # Errors
    /// If `cpus` is 0 or above [`machine::MAX_CPUS`], if frames would outnumber
    /// `u32`, or if the host refuses the address space.
    pub fn with_memory(cpus: usize, bytes: usize) -> io::Result<Self> {
        Self::with_options(Options::new(cpus, bytes))
    }

    /// A machine with the given options.
    ///
    /// # Errors
    /// Those of [`Hosted::with_memory`]; if there are no tags, or more than 65,536; if a range of
    /// [`Options::reserved`] is empty or does not lie in the memory.
    pub fn with_options(options: Options) -> io::Result<Self> {
        let Options { cpus, asids, .. } = options;
        if !(1..=MAX_CPUS).contains(&cpus) {
            return invalid(format!("a machine has 1 to {MAX_CPUS} CPUs, not {cpus}"));
        }
        if !(1..=1 << u16::BITS).contains(&asids) {
            return invalid(format!("a machine has 1 to 65536 tags, not {asids}"));
        }
        let frames = options.memory.div_ceil(PAGE_SIZE);
        let usable = without(frames, &options.reserved)?;
        // The kernel's root lies behind the frames that are handed over.
        let kernel_frames = usize::from(options.kernel_half);
        let Some(bytes) = options.memory.checked_next_multiple_of(PAGE_SIZE) else {
            return invalid(format!("{} bytes of memory", options.memory));
        };
        let arena = Arena::new(bytes.saturating_add(kernel_frames * PAGE_SIZE))?;
        for hole in &options.reserved {
            arena.forbid(hole.clone())?;
        }
        let mmus = (0..cpus).map(|_| mmu::CpuMmu::new()).collect();
        let mut inner = Self::inner(CpuRange::claim(cpus), arena, mmus);
        inner.usable = usable;
        inner.asids = asids;
        inner.oracle = options.watched.then(|| Oracle::new(frames + kernel_frames));
        inner.kernel = options.kernel_half.then_some(Frame(frames as u32));
        let machine = Hosted::of(inner);
        machine.map_kernel();
        Ok(machine)
    }

    /// Fills the kernel's root: all of the kernel's entries lead to one table, the root's frame
    /// itself, and none of them allows a task access.
    fn map_kernel(&self) {
        if let Some(root) = self.inner.kernel {
            for place in pte::USER_ENTRIES..pte::ENTRIES {
                let entry = root.address() | pte::PRESENT | pte::WRITABLE;
                self.inner
                    .arena
                    .word(root, place)
                    .store(entry, Ordering::Relaxed);
            }
        }
    }

    /// Checks that `root` has the kernel's entries.
    pub(crate) fn check_root(&self, root: Frame) {
        let Some(kernel) = self.inner.kernel else {
            return;
        };
        for place in pte::USER_ENTRIES..WORDS_PER_FRAME {
            let entry = |root| self.inner.arena.word(root, place).load(Ordering::Relaxed);
            let [has, is] = [root, kernel].map(entry);
            assert!(has == is, "entry {place} of {root:?} is not the kernel's");
        }
    }
}

/// The frames `0..frames` without those in `reserved`, as ascending ranges.
fn without(frames: usize, reserved: &[Range<u32>]) -> io::Result<Box<[Range<u32>]>> {
    let mut holes = reserved.to_vec();
    holes.sort_by_key(|hole| hole.start);
    let (mut usable, mut past) = (Vec::new(), 0);
    for hole in holes {
        if hole.is_empty() || hole.end as usize > frames {
            return invalid(format!("frames {hole:?} among {frames}"));
        }
        if past < hole.start {
            usable.push(past..hole.start);
        }
        past = past.max(hole.end);
    }
    if (past as usize) < frames {
        // The arena refuses more frames than a 32-bit number counts.
        usable.push(past..u32::try_from(frames).unwrap_or(u32::MAX));
    }
    Ok(usable.into())
}
