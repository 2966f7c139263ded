//! From stacks to frames.

use profile::Stacks;
use std::collections::BTreeMap;

/// Frames narrower than this share of the graph are not drawn.
const SMALLEST: f64 = 0.0005;
/// Frames of a stack beyond this depth are not drawn: no screen shows them.
const DEEPEST: usize = 160;

/// A frame. Its callees follow it, one level deeper.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The function.
    pub name: String,
    /// True if it belongs to the kernel.
    pub kernel: bool,
    /// The number of callers above it.
    pub depth: usize,
    /// Its left edge, as a share of the graph's width.
    pub start: f64,
    /// Its share of the width.
    pub width: f64,
    pub seconds: f64,
    /// Its share of all task time.
    pub share: f64,
    /// Its share before; equal to `share` where nothing is compared.
    pub before: f64,
}

#[derive(Default)]
struct Node {
    seconds: f64,
    before: f64,
    called: BTreeMap<String, Node>,
}

/// The frames of `stacks`, for tasks that had `task_seconds` together.
pub fn frames(stacks: &Stacks, task_seconds: f64) -> Vec<Frame> {
    let mut root = Node::default();
    root.add_all(stacks, |node, seconds| {
        node.seconds += seconds;
        node.before += seconds;
    });
    lay_out(&root, [task_seconds, task_seconds])
}

/// The frames of `after`, each with its share in `before`; both come with their task time.
pub fn differences(before: (&Stacks, f64), after: (&Stacks, f64)) -> Vec<Frame> {
    let mut root = Node::default();
    root.add_all(after.0, |node, seconds| node.seconds += seconds);
    root.add_all(before.0, |node, seconds| node.before += seconds);
    lay_out(&root, [before.1, after.1])
}

impl Node {
    fn add_all(&mut self, stacks: &Stacks, add: impl Fn(&mut Node, f64)) {
        for (stack, seconds) in stacks.iter() {
            let mut node = &mut *self;
            add(node, seconds);
            for frame in stack.split(';').take(DEEPEST) {
                node = node.called.entry(frame.to_owned()).or_default();
                add(node, seconds);
            }
        }
    }
}

fn lay_out(root: &Node, times: [f64; 2]) -> Vec<Frame> {
    let mut layout = Layout {
        frames: Vec::new(),
        whole: root.seconds,
        times,
    };
    if root.seconds > 0.0 {
        layout.place("all", root, 0, 0.0);
    }
    layout.frames
}

struct Layout {
    frames: Vec<Frame>,
    whole: f64,
    times: [f64; 2],
}

impl Layout {
    /// Places a frame and its callees, the widest first.
    fn place(&mut self, name: &str, node: &Node, depth: usize, start: f64) {
        let function = name.trim_end_matches("_[k]");
        self.frames.push(Frame {
            name: function.to_owned(),
            kernel: function != name,
            depth,
            start,
            width: node.seconds / self.whole,
            seconds: node.seconds,
            share: node.seconds / self.times[1],
            before: node.before / self.times[0],
        });
        let mut called: Vec<(&String, &Node)> = node.called.iter().collect();
        called.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds));
        let mut start = start;
        for (name, node) in called {
            if node.seconds / self.whole < SMALLEST {
                break; // the widest come first
            }
            self.place(name, node, depth + 1, start);
            start += node.seconds / self.whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(of: &[(&str, f64)]) -> Stacks {
        let mut stacks = Stacks::default();
        for (stack, seconds) in of {
            stacks.add(stack.split(';'), *seconds);
        }
        stacks
    }

    #[test]
    fn frames_lie_below_their_callers() {
        let stacks = stacks(&[
            ("main;a", 1.0),
            ("main;b;c_[k]", 2.0),
            ("main", 1.0),
            ("x", 0.001),
        ]);
        let frames = frames(&stacks, 8.0);
        let seen: Vec<_> = frames
            .iter()
            .map(|f| (f.name.as_str(), f.depth, f.start, (f.share * 1e3).round()))
            .collect();
        let wanted = [
            ("all", 0, 500.0),
            ("main", 1, 500.0),
            ("b", 2, 250.0),
            ("c", 3, 250.0),
            ("a", 2, 125.0),
        ];
        assert_eq!(seen.len(), wanted.len(), "x is too narrow: {seen:?}");
        for (found, (name, depth, share)) in seen.iter().zip(wanted) {
            assert_eq!((found.0, found.1, found.3), (name, depth, share));
        }
        assert!(
            (seen[4].2 - 2.0 / 4.001).abs() < 1e-9,
            "a follows b: {seen:?}"
        );
        assert!(frames[3].kernel && !frames[2].kernel);
    }

    #[test]
    fn a_difference_is_of_shares() {
        let (before, after) = (stacks(&[("a", 1.0), ("b", 1.0)]), stacks(&[("a", 3.0)]));
        let frames = differences((&before, 10.0), (&after, 10.0));
        let a = &frames[1];
        assert!(
            (a.share - 0.3).abs() < 1e-9 && (a.before - 0.1).abs() < 1e-9,
            "{a:?}"
        );
        assert_eq!(frames.len(), 2, "b is gone");
    }

    #[test]
    fn no_stack_is_too_deep() {
        let deep = vec!["f"; 100_000].join(";");
        assert_eq!(frames(&stacks(&[(&deep, 1.0)]), 1.0).len(), DEEPEST + 1);
        assert!(frames(&Stacks::default(), 1.0).is_empty());
    }
}
