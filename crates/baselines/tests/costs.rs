//! The cost of choosing parts at run time, in instructions: within a tenth of `docs/costs.md`.

// Instructions are those of optimised code.
#![cfg(not(debug_assertions))]

#[path = "../../sync/tests/callgrind/mod.rs"]
mod callgrind;

use callgrind::figures;

const CASES: [&str; 4] = ["compiled", "scalevm", "freebsd-epoch", "freebsd-di"];
const ITERATIONS: u64 = 1_000;

#[test]
fn a_choice_at_run_time_costs_what_is_said() {
    let observer = callgrind::says("selected", "observer");
    assert_eq!(
        observer,
        figures::observer(),
        "the example is of this build"
    );
    let counted = CASES.map(|name| {
        let all = callgrind::instructions("selected", name, ITERATIONS, Some("*counted*"));
        println!("{name}: {} instructions", all / ITERATIONS);
        (name, all / ITERATIONS)
    });
    let [compiled, own, epoch, di] = counted.map(|(_, each)| each);
    // The count includes a space's locks, swap's mutexes and the one of delayed invalidation.
    assert!(compiled < own && own < epoch && epoch != di, "{counted:?}");
    let wrong = figures::hold("Parts chosen at run time", &counted);
    assert!(wrong.is_empty(), "{}", wrong.join("; "));
}
