//! Limits of a space and committed memory, on hosted memory.

mod committed;
mod exact;
mod space;

use hosted::Hosted;
use machine::{Execute, Job, PAGE_SIZE, VaRange};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vm::system::Reservation;
use vm::{
    At, Best, Bring, Error, Flags, HEAP_START, Limit, Mappings, Move, Options, Overcommit, Prot,
    Request, Resource, Space, Stats, Vm,
};

use crate::refusing;

const P: usize = PAGE_SIZE;
const SLOT: usize = 2 << 20;

type System = Arc<Vm<Best<Hosted>>>;
type TestSpace = Space<Best<Hosted>>;

fn system_with(overcommit: Overcommit) -> System {
    let machine = Hosted::with_memory(2, 16 << 20).expect("memory");
    machine.attach(0);
    let options = Options {
        overcommit,
        ..Options::default()
    };
    Vm::with_options(machine, options).expect("memory for the VM")
}

fn space() -> TestSpace {
    let space = Space::new(&system_with(Overcommit::Never)).expect("a space");
    space.activate();
    space
}

fn limited(limit: Limit, pages: usize) -> TestSpace {
    let space = space();
    space.set_limit(limit, Some(pages * P)).expect("a limit");
    space
}

fn pages(at: usize, count: usize) -> VaRange {
    VaRange::sized(at, count * P)
}

fn locked(count: usize) -> Request<'static, Best<Hosted>> {
    Request::anonymous(count * P, Prot::READ_WRITE).with(Flags::LOCKED)
}

fn over(limit: Limit) -> Error {
    Error::OverLimit(limit)
}
