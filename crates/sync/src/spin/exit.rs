//! Freeing what spin locks keep in a task's words when the task ends.

use super::{ClhNode, McsNode, place, pool};
use machine::{Locals, Machine};

/// Makes sure that whatever spin locks keep in the task's words is freed when the task ends. Cheap
/// and idempotent; call it when a word gets an owned value.
pub(super) fn give_up_at_exit<M: Machine>(locals: &Locals) {
    locals.at_exit.set(Some(at_exit::<M>));
}

/// Each user of an owning word has a line here.
fn at_exit<M: Machine>(locals: &Locals) {
    pool::drain::<M, McsNode<M>>(locals);
    pool::drain::<M, ClhNode<M>>(locals);
    place::drain::<M>(locals);
}
