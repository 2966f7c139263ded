//! What operations cost, in instructions: each within a tenth of what `docs/costs.md` says,
//! so that what makes one dearer, or cheaper, shows.

#[path = "../../sync/tests/callgrind/mod.rs"]
mod callgrind;

/// An operation, how often to do it, and how many of it an iteration of it is.
struct Case {
    name: &'static str,
    iterations: u64,
    each: u64,
    instructions: u64,
}

const fn case(name: &'static str, iterations: u64, each: u64, instructions: u64) -> Case {
    Case {
        name,
        iterations,
        each,
        instructions,
    }
}

/// With `examples/costs.rs`, which counts 256 faults an iteration.
const CASES: [Case; 19] = [
    case("zero", 100, 1, 535),
    case("copy", 100, 1, 543),
    case("map-unmap", 1_000, 1, 0),
    case("first-touch", 20, 256, 0),
    case("read-shared", 20, 256, 0),
    case("read-private", 20, 256, 0),
    case("copy-on-write", 20, 256, 0),
    case("reuse", 20, 256, 0),
    case("fork-exit", 2, 25_600, 0),
    case("fork-exit-empty", 50, 1, 0),
    case("protect", 1_000, 1, 0),
    case("unmap-touched", 1_000, 1, 0),
    case("discard", 1_000, 1, 0),
    case("move", 50, 256, 0),
    case("grow", 200, 1, 0),
    case("page-out", 200, 1, 0),
    case("swap-in", 200, 1, 0),
    case("incore", 1_000, 1, 0),
    case("copy-in", 1_000, 1, 0),
];

#[test]
fn operations_cost_what_is_said() {
    let mut wrong = Vec::new();
    for case in CASES {
        let (name, expected) = (case.name, case.instructions);
        let all = callgrind::instructions("costs", name, case.iterations, Some("*counted*"));
        let each = all / case.iterations / case.each;
        println!("{name}: {each} instructions, expected {expected}");
        if each.abs_diff(expected) * 10 > expected {
            wrong.push(format!("{name}: {each} instructions, not {expected}"));
        }
    }
    // Without optimisation nothing is inlined, and locks are watched.
    if !cfg!(debug_assertions) {
        assert!(wrong.is_empty(), "{}", wrong.join("; "));
    }
}
