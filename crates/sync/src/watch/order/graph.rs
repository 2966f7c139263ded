//! All observed lock orders: a matrix of class pairs.
//!
//! ```text
//! say(a, b):  if matrix[a][b] is set: known
//!             set matrix[a][b]
//!             look for a path b → … → a over set, not bad, pairs
//!             if there is one: mark matrix[a][b] bad
//! ```
//! The CPU that closes a cycle finds it without a lock: one of the pairs in the cycle is set last,
//! and the search that follows it sees all the others. For that, setting and searching are
//! sequentially consistent: two CPUs that record `a → b` and `b → a` at the same time follow
//! Dekker's pattern. Both may then report.
//!
//! A bad pair stays known, so it is reported once, but no path leads over it, so later orders are
//! not reported because of it.

use crate::watch::ClassState;
use crate::watch::class::{MAX_CLASSES, class};
use crate::watch::site::Site;
use core::panic::Location;
use core::sync::atomic::{AtomicU64, Ordering};

/// 0, or [`SET`], perhaps [`BAD`], the site where `from` was acquired in bits 0–15 and the one
/// where `to` was waited for in bits 16–31.
static MATRIX: [[AtomicU64; MAX_CLASSES]; MAX_CLASSES] =
    [const { [const { AtomicU64::new(0) }; MAX_CLASSES] }; MAX_CLASSES];

const SET: u64 = 1 << 32;
const BAD: u64 = 1 << 33;

/// A step in the order: a task held `from` and waited for `to`.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The class of the lock held; [`None`] if it has no number.
    pub from: Option<&'static ClassState>,
    /// Where the held lock was acquired; [`None`] if there were more sites than are recorded.
    pub held_at: Option<&'static Location<'static>>,
    /// The class of the awaited lock.
    pub to: Option<&'static ClassState>,
    /// Where the task waited for it.
    pub taken_at: Option<&'static Location<'static>>,
}

/// Steps, each starting where the previous one ends.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// The classes from the end back to the start.
    reversed: [u8; MAX_CLASSES],
    len: usize,
}

impl Path {
    /// The steps, each as it was first taken.
    pub fn edges(&self) -> impl Iterator<Item = Edge> + '_ {
        let pairs = self.reversed[..self.len].windows(2).rev();
        pairs.filter_map(|pair| recorded(pair[1] as usize, pair[0] as usize))
    }
}

/// The result of recording an order.
pub(super) enum Verdict {
    Fine,
    /// The order breaks the declared ranks.
    Rank,
    /// The path is the opposite order, recorded before.
    Cycle(Path),
}

/// Returns true if this order is already recorded.
#[inline]
pub(super) fn is_known(from: usize, to: usize) -> bool {
    // Relaxed: no other read depends on it.
    MATRIX[from][to].load(Ordering::Relaxed) != 0
}

/// Records that `from`, acquired at `held_at`, comes before `to`, waited for at `taken_at`.
#[cold]
pub(super) fn say(
    from: usize,
    held_at: Site,
    to: usize,
    taken_at: Site,
    ranks_kept: bool,
) -> Verdict {
    let sites = held_at.0 as u64 | (taken_at.0 as u64) << 16;
    let bad = if ranks_kept { 0 } else { BAD };
    // Sequentially consistent: see the module docs; pairs with the loads in `search`.
    let said =
        MATRIX[from][to].compare_exchange(0, SET | bad | sites, Ordering::SeqCst, Ordering::SeqCst);
    if said.is_err() {
        return Verdict::Fine; // another CPU has just recorded it, and reports it
    }
    if !ranks_kept {
        return Verdict::Rank;
    }
    match search(to, from) {
        None => Verdict::Fine,
        Some(path) => {
            MATRIX[from][to].fetch_or(BAD, Ordering::SeqCst);
            Verdict::Cycle(path)
        }
    }
}

/// A shortest path, breadth first.
fn search(start: usize, end: usize) -> Option<Path> {
    /// The class has not been visited.
    const NEW: u8 = u8::MAX;
    const _: () = assert!(MAX_CLASSES <= NEW as usize);
    let mut parent = [NEW; MAX_CLASSES];
    let mut queue = [0u8; MAX_CLASSES];
    let (mut first, mut last) = (0, 1);
    queue[0] = start as u8;
    parent[start] = start as u8;
    while first < last {
        let at = queue[first] as usize;
        first += 1;
        if at == end {
            return Some(trace(&parent, start, end));
        }
        for (next, pair) in MATRIX[at].iter().enumerate() {
            if parent[next] == NEW && pair.load(Ordering::SeqCst) & (SET | BAD) == SET {
                parent[next] = at as u8;
                queue[last] = next as u8;
                last += 1;
            }
        }
    }
    None
}

/// The path from `start` to `end` that `parent` describes.
fn trace(parent: &[u8; MAX_CLASSES], start: usize, end: usize) -> Path {
    let mut path = Path {
        reversed: [0; MAX_CLASSES],
        len: 1,
    };
    path.reversed[0] = end as u8;
    let mut at = end;
    while at != start {
        at = parent[at] as usize;
        path.reversed[path.len] = at as u8;
        path.len += 1;
    }
    path
}

/// The step as it was first taken, if it was.
fn recorded(from: usize, to: usize) -> Option<Edge> {
    let pair = MATRIX[from][to].load(Ordering::SeqCst);
    (pair & SET != 0).then(|| Edge {
        from: class(from),
        held_at: Site(pair as u16).location(),
        to: class(to),
        taken_at: Site((pair >> 16) as u16).location(),
    })
}

/// The lock order observed so far: each pair of classes, with the sites that first showed it.
pub fn edges() -> impl Iterator<Item = Edge> {
    let pairs = (1..MAX_CLASSES).flat_map(|from| (1..MAX_CLASSES).map(move |to| (from, to)));
    pairs.filter_map(|(from, to)| recorded(from, to))
}
