//! One CPU's free frames.

use super::Content;
use machine::Frame;

/// Frames that move between a cache and the pool at once.
pub(super) const BATCH: usize = 32;
/// Frames of one kind that a cache may hold.
const CAPACITY: usize = 2 * BATCH;

/// A stack of fixed capacity.
struct Stack {
    frames: [Frame; CAPACITY],
    len: usize,
}

impl Default for Stack {
    fn default() -> Self {
        Stack {
            frames: [Frame(0); CAPACITY],
            len: 0,
        }
    }
}

impl Stack {
    #[inline]
    fn pop(&mut self) -> Option<Frame> {
        self.len = self.len.checked_sub(1)?;
        Some(self.frames[self.len])
    }

    /// Pushes a frame; a full stack returns its older half.
    #[inline]
    fn push(&mut self, frame: Frame) -> Option<[Frame; BATCH]> {
        debug_assert!(
            self.frames[..self.len].last() != Some(&frame),
            "{frame:?} is freed twice"
        );
        let surplus = (self.len == CAPACITY).then(|| self.halve());
        self.frames[self.len] = frame;
        self.len += 1;
        surplus
    }

    /// Takes the older half out of a full stack.
    #[cold]
    fn halve(&mut self) -> [Frame; BATCH] {
        debug_assert_eq!(self.len, CAPACITY, "frames go while there is room");
        let mut oldest = [Frame(0); BATCH];
        oldest.copy_from_slice(&self.frames[..BATCH]);
        self.frames.copy_within(BATCH.., 0);
        self.len -= BATCH;
        oldest
    }
}

/// The two stacks: last freed, first used, while its lines are warm.
#[derive(Default)]
pub(super) struct Cache {
    zeroed: Stack,
    plain: Stack,
}

impl Cache {
    /// Takes a frame, with the requested content if there is one, and returns it with its content.
    #[inline]
    pub(super) fn pop(&mut self, content: Content) -> Option<(Frame, Content)> {
        let other = match content {
            Content::Zeroed => Content::Any,
            Content::Any => Content::Zeroed,
        };
        let mut kinds = [content, other].into_iter();
        kinds.find_map(|content| Some((self.stack(content).pop()?, content)))
    }

    /// A frame that needs zeroing.
    pub(super) fn pop_plain(&mut self) -> Option<Frame> {
        self.plain.pop()
    }

    /// Adds a frame; a full stack returns the frames that must go to the pool.
    #[inline]
    pub(super) fn push(&mut self, frame: Frame, content: Content) -> Option<[Frame; BATCH]> {
        self.stack(content).push(frame)
    }

    #[inline]
    fn stack(&mut self, content: Content) -> &mut Stack {
        match content {
            Content::Zeroed => &mut self.zeroed,
            Content::Any => &mut self.plain,
        }
    }

    /// Adds one of at most [`BATCH`] frames of unknown content from the pool.
    #[inline]
    pub(super) fn refill(&mut self, frame: Frame) {
        let surplus = self.plain.push(frame);
        debug_assert!(surplus.is_none(), "a cache is refilled when empty");
    }

    pub(super) fn len(&self) -> usize {
        self.zeroed.len + self.plain.len
    }
}
