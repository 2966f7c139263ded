//! What operations cost, in instructions: each within a tenth of what `docs/costs.md` says,
//! so that what makes one dearer, or cheaper, shows.

#[path = "../../sync/tests/callgrind/mod.rs"]
mod callgrind;

use std::any::TypeId;
use sync::watch::{Both, DefaultObserver, Off, Order, Profile};

/// An operation, how often to do it, and how many of it an iteration of it is.
struct Case {
    name: &'static str,
    iterations: u64,
    each: u64,
    /// With nobody watching the locks, as `docs/costs.md` says.
    bare: u64,
    /// With all that can watch them, as the command is built.
    watched: u64,
}

const fn case(name: &'static str, iterations: u64, each: u64, bare: u64, watched: u64) -> Case {
    Case {
        name,
        iterations,
        each,
        bare,
        watched,
    }
}

/// With `examples/costs.rs`, which counts 256 faults an iteration, 20,000 mappings of a page, or 50
/// times 2 MiB.
const CASES: [Case; 20] = [
    case("zero", 100, 1, 535, 535),
    case("copy", 100, 1, 543, 543),
    case("map-unmap", 1_000, 1, 2_001, 2_660),
    case("first-touch", 20, 256, 1_388, 2_426),
    case("read-shared", 20, 256, 937, 1_663),
    case("read-private", 20, 256, 934, 1_660),
    case("copy-on-write", 20, 256, 2_153, 4_112),
    case("reuse", 20, 256, 679, 1_039),
    case("fork-exit", 20, 50, 7_093, 8_628),
    case("fork-exit-empty", 50, 1, 26_069, 28_330),
    case("protect", 1_000, 1, 3_461, 4_136),
    case("unmap-touched", 1_000, 1, 2_284, 3_388),
    case("discard", 1_000, 1, 1_567, 2_684),
    case("move", 50, 256, 423, 849),
    case("grow", 200, 1, 1_780, 2_521),
    case("unshare", 1, 20_000, 2_041, 2_749),
    case("page-out", 200, 1, 11_059, 14_554),
    case("swap-in", 200, 1, 6_740, 9_509),
    case("incore", 1_000, 1, 672, 1_007),
    case("copy-in", 1_000, 1, 562, 899),
];

/// What `case` must cost in this build, if that is known: nobody watches its locks, or all do.
fn expected(case: &Case) -> Option<u64> {
    let observer = TypeId::of::<DefaultObserver>();
    if cfg!(debug_assertions) {
        // Without optimisation nothing is inlined.
        None
    } else if observer == TypeId::of::<Off>() {
        Some(case.bare)
    } else if observer == TypeId::of::<Both<Order, Profile>>() {
        Some(case.watched)
    } else {
        None
    }
}

#[test]
fn operations_cost_what_is_said() {
    let mut wrong = Vec::new();
    for case in CASES {
        let name = case.name;
        let all = callgrind::instructions("costs", name, case.iterations, Some("*counted*"));
        let each = all / case.iterations / case.each;
        println!("{name}: {each} instructions");
        assert!(each > 0, "{name} does nothing");
        if let Some(expected) = expected(&case)
            && each.abs_diff(expected) * 10 > expected
        {
            wrong.push(format!("{name}: {each} instructions, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("; "));
}
