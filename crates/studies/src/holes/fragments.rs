//! A page and a superpage among many regions, and the cost of finding their mappings.

use crate::Outcome;
use baselines::Preset;
use baselines::selected::Selected;
use bench::Failure;
use machine::{Clock, PAGE_SIZE, VaRange};
use sim::profile::MachineProfile;
use sim::{Options as MachineOptions, Sim};
use vm::{Advice, At, Error, Flags, Options, Prot, Request, Space, Vm};

/// Bytes of a superpage.
const HUGE: usize = 2 << 20;
/// The address of the superpage; the memory with holes follows.
const AT: usize = 1 << 41;
/// Pages from one hole to the next, and of a hole.
const SPACING: usize = 8;
const HOLE: usize = 4;
/// Physical memory: for the superpage, some pages, and tables of 10 GB.
const MEMORY: usize = 256 << 20;

/// The name in [`Outcome::other`] of the nanoseconds of a split.
pub const SPLIT: &str = "split";
/// And the number of regions.
pub const REGIONS: &str = "regions";

/// Nanoseconds of a reverse walk that finds one mapping of a page, of memory that holes have
/// made `regions` regions; and of taking a page out of a superpage of the same memory.
pub fn look(
    preset: Preset,
    regions: usize,
    profile: &MachineProfile,
    seed: u64,
) -> Result<Outcome, Failure> {
    let machine = Sim::new(MachineOptions {
        memory: MEMORY,
        seed,
        ..MachineOptions::new(profile.clone())
    });
    let machine = machine.map_err(Failure::start("simulated machine"))?;
    let vm = machine.clone();
    let seen = machine.on_cpu(0, move || measure(vm, preset, regions));
    let failed = |error| Failure::Unavailable(format!("{regions} regions: {error}"));
    let [walk, split, count] = seen.map_err(failed)?;
    Ok(Outcome::of(walk).with(SPLIT, split).with(REGIONS, count))
}

/// The walk's and the split's nanoseconds, and the regions; nothing that lies in the machine.
fn measure(machine: Sim, preset: Preset, regions: usize) -> Result<[f64; 3], Error> {
    let holed = VaRange::sized(AT + HUGE, regions * SPACING * PAGE_SIZE);
    let swap_pages = Some(2 * ((HUGE + holed.len()) / PAGE_SIZE) as u64);
    let vm = Vm::with_options(
        machine,
        Options::<Selected<Sim>> {
            swap_pages,
            ..preset.options()
        },
    )
    .expect("memory for the VM");
    let space = Space::new(&vm)?;
    space.activate();
    let superpage = Request::anonymous(HUGE, Prot::READ_WRITE).at(At::Fixed(AT));
    space.map_as(&superpage.with(Flags::HUGE))?;
    (AT..AT + HUGE)
        .step_by(PAGE_SIZE)
        .try_for_each(|page| space.store(page, 1))?;
    space.map_fixed(holed, Prot::READ_WRITE)?;
    space.store(holed.start, 1)?;
    for hole in (holed.start..holed.end).step_by(SPACING * PAGE_SIZE) {
        let at = hole + (SPACING - HOLE) * PAGE_SIZE;
        space.unmap(VaRange::sized(at, HOLE * PAGE_SIZE))?;
    }
    let frame = space.pmap().lookup(holed.start);
    let hold = frame.and_then(|frame| vm.hold(frame));
    let hold = hold.expect("the page has just been written");
    let (removed, walk) = timed(|| vm.remove_all(&hold));
    assert_eq!((removed.mappings, space.pmap().superpages()), (1, 1));
    let page = VaRange::sized(AT, PAGE_SIZE);
    let (split, took) = timed(|| space.advise(page, Advice::DontNeed));
    split?;
    assert_eq!(space.pmap().superpages(), 0);
    // The superpage's region is one with the first that follows, except for the advised part.
    let regions = space.regions().expect("regions");
    let count = regions.iter().filter(|one| one.range.start >= holed.start);
    Ok([walk, took, count.count() as f64])
}

/// The result of `act`, and the simulated nanoseconds that it takes.
fn timed<R>(act: impl FnOnce() -> R) -> (R, f64) {
    let began = Sim::now();
    let result = act();
    (result, (Sim::now() - began) as f64)
}
