//! Random sequences in which operations affect one another.
//!
//! Equal seeds give equal sequences. A model performs the steps as they are generated, so that most
//! of them concern mapped memory: a few places around multiples of 2 MiB, files of a few pages, a
//! few processes. About one step in ten concerns unmapped memory, or asks for something absurd.

mod calls;
mod edges;
mod pick;
mod scarcity;

pub use scarcity::scarce;

use crate::address::{Address, HEAP_PAGES, Handle, Origin, PAGE, Range, WINDOW_PAGES};
use crate::model::{Known, Model};
use crate::step::{Call, DUMP_PAGES, FILES, PROCESSES, ProcessId, Step};
use calls::FILE_PAGES;
use oorandom::Rand64;

/// Attempts at a step before it is skipped.
const DRAWS: usize = 100;

/// The number of draws in a hundred that move a number to an edge, if the call has one. Most are
/// undefined.
const EDGED: u64 = 6;

/// A sequence of about `steps` steps, followed by steps that examine everything.
///
/// `model`, which is new, defines all of them; steps that `supports` rejects are left out.
pub fn sequence(
    seed: u64,
    steps: usize,
    model: Model,
    supports: &dyn Fn(&Step) -> bool,
) -> Vec<Step> {
    let mut generator = Generator {
        random: Rand64::new(u128::from(seed)),
        model,
        steps: Vec::new(),
        supports,
        handle: 0,
        value: 0,
    };
    generator.fill_files();
    for _ in 0..steps {
        generator.step();
    }
    generator.look();
    generator.steps
}

/// A sequence being generated.
struct Generator<'a> {
    random: Rand64,
    model: Model,
    steps: Vec<Step>,
    supports: &'a dyn Fn(&Step) -> bool,
    /// The last handle used.
    handle: Handle,
    /// The last value stored.
    value: u64,
}

impl Generator<'_> {
    /// Gives most files some pages before anything else happens.
    fn fill_files(&mut self) {
        for file in 0..FILES {
            if self.chance(80) {
                let bytes = (1 + self.below(FILE_PAGES)) * PAGE;
                let process = 0;
                self.take(Step {
                    process,
                    call: Call::Truncate(file, bytes),
                });
                let call = self.write();
                self.take(Step { process, call });
            }
        }
    }

    /// Draws until a step is defined.
    fn step(&mut self) {
        let known = self.model.known();
        for _ in 0..DRAWS {
            let Some((process, _)) = self.one_of(&known.processes) else {
                return;
            };
            let process = *process;
            let mut call = self.call(&known, process);
            if self.chance(EDGED) {
                call = self.edged(call);
            }
            if self.take(Step { process, call }) {
                return;
            }
        }
    }

    /// Appends the step if it is defined and supported.
    fn take(&mut self, step: Step) -> bool {
        let last = step.call == Call::Exit && self.model.known().processes.len() == 1;
        let taken = !last && (self.supports)(&step) && self.model.judge(&step).is_ok();
        if taken {
            self.steps.push(step);
        }
        taken
    }

    /// Examines everything that all processes have.
    fn look(&mut self) {
        for (process, regions) in self.model.known().processes {
            let mut look = |call| self.take(Step { process, call });
            look(Call::Regions(Range::pages(
                Address::window(0),
                WINDOW_PAGES,
            )));
            let heap = Address {
                place: Origin::Heap,
                offset: 0,
            };
            look(Call::Regions(Range::pages(heap, HEAP_PAGES)));
            for region in regions {
                let all = Range::pages(region.start, region.pages);
                look(Call::InCore(all));
                if matches!(region.start.place, Origin::Handle(_)) {
                    look(Call::Regions(all));
                }
                for first in (0..region.pages).step_by(DUMP_PAGES as usize) {
                    let start = region.start.plus(first * PAGE);
                    let pages = DUMP_PAGES.min(region.pages - first);
                    look(Call::Dump(Range::pages(start, pages)));
                }
            }
        }
    }

    /// A number that no process has.
    fn free_process(&mut self, known: &Known) -> ProcessId {
        let taken = |id: &ProcessId| known.processes.iter().any(|(taken, _)| taken == id);
        let free = (0..PROCESSES).find(|id| !taken(id));
        free.unwrap_or(0)
    }
}
