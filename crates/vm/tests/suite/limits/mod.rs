//! Limits of a space and committed memory.

mod committed;
mod exact;
mod space;

use crate::refusing;
use crate::world::{P, SLOT, TestSpace, pages, reserved, world};
use hosted::Hosted;
use machine::{Execute, Job};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use vm::{
    At, Best, Bring, Error, Flags, HEAP_START, Limit, Mappings, Move, Overcommit, Prot, Request,
    Resource, Space, Stats,
};

fn space() -> TestSpace {
    world(16).space()
}

fn limited(limit: Limit, pages: usize) -> TestSpace {
    let space = space();
    space.set_limit(limit, Some(pages * P)).expect("a limit");
    space
}

fn locked(count: usize) -> Request<'static, Best<Hosted>> {
    Request::anonymous(count * P, Prot::READ_WRITE).with(Flags::LOCKED)
}

fn over(limit: Limit) -> Error {
    Error::OverLimit(limit)
}
