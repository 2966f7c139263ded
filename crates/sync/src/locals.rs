//! Who uses which of a task's words, and how they are given up when it ends.

use crate::spin::pool;
use machine::{Locals, Machine};

/// The task's unused MCS nodes ([`crate::spin::Mcs`]).
pub(crate) const MCS_NODES: usize = 0;
/// The task's unused CLH nodes ([`crate::spin::Clh`]).
pub(crate) const CLH_NODES: usize = 1;
// Words 2 and 3 are free for queue locks to come; 4 to 63 are the stack of held
// locks.

/// Makes sure that what this crate keeps in the task's words is given up when
/// the task ends. Cheap and idempotent; call it when a word gets an owned value.
pub(crate) fn give_up_at_exit<M: Machine>(locals: &Locals) {
    locals.at_exit.set(Some(at_exit::<M>));
}

/// Every user of an owning word has a line here.
fn at_exit<M: Machine>(locals: &Locals) {
    pool::drain::<M, crate::spin::McsNode<M>>(locals);
    pool::drain::<M, crate::spin::ClhNode<M>>(locals);
}
