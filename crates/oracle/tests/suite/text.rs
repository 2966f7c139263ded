//! Sequences as text, there and back.

use oracle::Model;
use oracle::generate::sequence;
use oracle::text::{parse, print};

#[test]
fn what_is_printed_is_read_again() {
    for seed in 0..200 {
        let steps = sequence(seed, 200, Model::default(), &|_| true);
        assert_eq!(parse(&print(&steps)), Ok(steps));
    }
}

#[test]
fn comments_and_blank_lines_are_no_steps() {
    let text = "# nothing\n\n0: fork 1 # a child\n  1: exit\n";
    assert_eq!(
        print(&parse(text).expect("two steps")),
        "0: fork 1\n1: exit\n"
    );
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let table = [
        ("fork 1", "line 1: `PROCESS:` is missing"),
        (
            "0: exit\n9: exit",
            "line 2: `9` is not a process: they are 0 to 5",
        ),
        ("0: jump", "line 1: `jump` is not a call"),
        ("0: unmap w1", "line 1: the length is missing"),
        ("0: unmap q1 1p", "line 1: `q1` is not an address"),
        ("0: unmap w1 1p 7", "line 1: `7` is unexpected"),
        (
            "0: protect w1 1p rx",
            "line 1: `rx` is not a set of rights such as rw-",
        ),
        (
            "0: map anywhere 1p rw- private anonymous",
            "line 1: `as hN` is missing",
        ),
        ("0: load word w1+4", "line 1: w1+4 is not aligned to a word"),
        (
            "0: truncate 3 0",
            "line 1: `3` is not a file: they are 0 to 2",
        ),
        (
            "0: load byte w99999999999999999999",
            "line 1: `w99999999999999999999` is not an address",
        ),
        ("0: load byte é1", "line 1: `é1` is not an address"),
        (
            "0: write 0 @0 257 0x1",
            "line 1: a transfer has at most 256 bytes, a file 1048576",
        ),
        (
            "0: truncate 0 300p",
            "line 1: a file has at most 1048576 bytes",
        ),
    ];
    for (text, why) in table {
        let error = parse(text).expect_err(text);
        assert_eq!(error.to_string(), why);
    }
}

#[test]
fn a_seed_is_a_sequence_for_good() {
    let again = || sequence(7, 100, Model::default(), &|_| true);
    assert_eq!(again(), again());
    assert_ne!(again(), sequence(8, 100, Model::default(), &|_| true));
}

#[test]
fn what_a_system_does_not_know_is_not_generated() {
    let supports = |step: &oracle::Step| !matches!(step.call, oracle::Call::Remap(_));
    for seed in 0..20 {
        assert!(
            sequence(seed, 100, Model::default(), &supports)
                .iter()
                .all(supports)
        );
    }
}
