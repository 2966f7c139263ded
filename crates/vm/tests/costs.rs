//! The costs of operations, in instructions: each within a tenth of the figure in `docs/costs.md`,
//! so that a change that makes one dearer, or cheaper, shows.

// Instructions are those of optimised code.
#![cfg(not(debug_assertions))]

#[path = "../../sync/tests/callgrind/mod.rs"]
mod callgrind;

use callgrind::figures;

/// A case of `examples/costs.rs`, how often to do it, and how many of it an iteration is: it counts
/// 256 faults an iteration, 20,000 mappings of a page, or 50 times 2 MiB.
const CASES: [(&str, u64, u64); 23] = [
    ("zero", 100, 1),
    ("copy", 100, 1),
    ("map-unmap", 1_000, 1),
    ("first-touch", 20, 256),
    ("read-shared", 20, 256),
    ("read-private", 20, 256),
    ("copy-on-write", 20, 256),
    ("reuse", 20, 256),
    ("fork-exit", 20, 50),
    ("fork-exit-empty", 50, 1),
    ("protect", 1_000, 1),
    ("unmap-touched", 1_000, 1),
    ("unmap-pages", 20, 256),
    ("discard", 1_000, 1),
    ("move", 50, 256),
    ("grow", 200, 1),
    ("unshare", 1, 20_000),
    ("walk", 1, 20_000),
    ("walk-past", 100, 1),
    ("page-out", 200, 1),
    ("swap-in", 200, 1),
    ("incore", 1_000, 1),
    ("copy-in", 1_000, 1),
];

#[test]
fn operations_cost_what_is_said() {
    let observer = callgrind::says("costs", "observer");
    assert_eq!(
        observer,
        figures::observer(),
        "the example is of this build"
    );
    let counted = CASES.map(|(name, iterations, each)| {
        let all = callgrind::instructions("costs", name, iterations, Some("*counted*"));
        let each = all / iterations / each;
        println!("{name}: {each} instructions");
        assert!(each > 0, "{name} does nothing");
        (name, each)
    });
    let wrong = figures::hold("Operations", &counted);
    assert!(wrong.is_empty(), "{}", wrong.join("; "));
}
