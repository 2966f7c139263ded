//! The model predicts the answers of this computer's kernel.

use oracle::Model;
use oracle::check::{play, shrink};
use oracle::generate::sequence;
use oracle::{Broken, Linux, Outcome, System, text};

#[test]
fn the_kernel_does_what_the_model_says() {
    let mut linux = Linux::new().expect("processes to play with");
    let mut compared = 0;
    for seed in 0..150 {
        let steps = sequence(seed, 30 + seed as usize, Model::default(), &|step| {
            linux.supports(step)
        });
        match play(&steps, &mut [&mut linux]).expect("it does not break") {
            Ok(played) => compared += played.compared,
            Err(found) => {
                let short = shrink(found, &mut [&mut linux]).expect("it does not break");
                panic!("seed {seed}:\n{short}");
            }
        }
    }
    assert!(compared > 10_000, "{compared}");
}

/// The outcome of each step of `steps`, one per line.
fn outcomes(steps: &str) -> Vec<String> {
    let mut linux = Linux::new().expect("processes to play with");
    linux.reset().expect("it does not break");
    let steps = text::parse(steps).expect("steps");
    let perform = |step| linux.perform(step).map(|outcome| outcome.to_string());
    let outcomes: Result<_, Broken> = steps.iter().map(perform).collect();
    outcomes.expect("it does not break")
}

#[test]
fn processes_are_real() {
    let steps = "
        0: map fixed w10 2p rw- private anonymous
        0: map fixed w20 1p rw- shared anonymous
        0: store word w10+8 0x1122
        0: fork 1
        1: store word w10+8 0x3344
        1: store byte w20 0x55
        0: load word w10+8
        1: load word w10+8
        0: load byte w20
        1: exit
        0: load word w12
        0: in-core w10 2p
        0: regions w0 32p";
    let expected = [
        "at w10",
        "at w20",
        "ok",
        "ok",
        "ok",
        "ok",
        "0x1122",
        "0x3344",
        "0x55",
        "ok",
        "SIGSEGV",
        "in core 10",
        "regions [w10 2p rw-p, w20 1p rw-s]",
    ];
    assert_eq!(outcomes(steps), expected);
}

#[test]
fn files_are_real() {
    let steps = "
        0: write 1 @4090 12 0x7
        0: map fixed w10 3p rw- shared file 1 @0
        0: load byte w11+5
        0: load byte w12
        0: store byte w10 0x9
        0: read 1 @0 2
        0: truncate 1 100
        0: dump w10 2p
        0: regions w10 3p
        0: map fixed w20 1p rw- shared file 1 @0 readonly";
    let expected = [
        "0xc",
        "at w10",
        "0x7",
        "SIGBUS",
        "ok",
        "bytes 0900",
        "ok",
        "pages [0:09, SIGBUS]",
        "regions [w10 3p rw-s file 1 @0p]",
        "EACCES",
    ];
    assert_eq!(outcomes(steps), expected);
}

#[test]
fn a_replaced_process_has_nothing() {
    let steps = "
        0: map fixed w10 1p rw- private anonymous
        0: map anywhere 1p rw- private anonymous as h1
        0: break 3p
        0: unmap b0 3p
        0: replace
        0: load byte w10
        0: regions w0 2048p
        0: break 2p
        0: regions b0 64p";
    let said = outcomes(steps);
    let said = &said[5..];
    let expected = ["SIGSEGV", "regions []", "0x2000", "regions [b0 2p rw-p]"];
    assert_eq!(said, expected);
}

#[test]
fn sequences_do_not_hear_of_each_other() {
    let mut linux = Linux::new().expect("processes to play with");
    let steps = text::parse("0: map fixed w1 1p rw- private anonymous\n0: write 0 @0 1 0x1");
    let look = text::parse("0: load byte w1\n0: read 0 @0 1").expect("steps");
    for _ in 0..2 {
        linux.reset().expect("it does not break");
        for step in steps.as_ref().expect("steps") {
            linux.perform(step).expect("it does not break");
        }
        linux.reset().expect("it does not break");
        assert_eq!(linux.perform(&look[0]).expect("a load"), Outcome::Segv);
        assert_eq!(
            linux.perform(&look[1]).expect("a read"),
            Outcome::Bytes(vec![])
        );
    }
}
