//! Compares the tree with an array of addresses.

extern crate std;

use super::*;
use hosted::Hosted;
use machine::Topology;
use std::vec;

#[test]
fn look_ups_find_what_was_stored_last() {
    let machine = Hosted::new(1);
    machine.on_cpu(0, || {
        let domain = Domain::new(machine.cpus());
        let tree = Maple::<Hosted>::new();
        let mut seen = vec![0usize; 600];
        let mut state = 1u64;
        let mut roll = |sides: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % sides
        };
        for step in 1..4000usize {
            let start = roll(seen.len());
            let most = if step % 50 == 0 { 400 } else { 4 };
            let end = (start + 1 + roll(most)).min(seen.len());
            let vma = if roll(3) == 0 { 0 } else { step };
            tree.store(&domain, VaRange { start, end }, vma as *mut ());
            seen[start..end].fill(vma);
            if step % 40 == 0 {
                check(&tree, &seen);
            }
        }
        let copy = Maple::<Hosted>::new();
        let ranges = seen.iter().enumerate().filter(|(_, vma)| **vma != 0);
        copy.fill(ranges.map(|(at, &vma)| {
            (
                VaRange {
                    start: at,
                    end: at + 1,
                },
                vma as *mut (),
            )
        }));
        check(&copy, &seen);
    });
}

fn check(tree: &Maple<Hosted>, seen: &[usize]) {
    for (address, &vma) in seen.iter().enumerate() {
        let found = tree
            .find(address)
            .map_or(0, |found| found.as_ptr() as usize);
        assert_eq!(found, vma, "address {address}");
    }
    assert!(tree.find(seen.len()).is_none() && tree.find(usize::MAX).is_none());
}
