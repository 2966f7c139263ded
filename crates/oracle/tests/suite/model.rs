//! The model's answers where systems may differ.

use oracle::check::{model_for, play};
use oracle::{Broken, Halfway, Model, Outcome, Step, System, text};

/// A model's answer to the last of `steps`.
fn last(mut model: Model, steps: &str) -> Result<String, &'static str> {
    let steps = text::parse(steps).expect("steps");
    let mut said = Err("there was no step");
    for step in &steps {
        said = model.judge(step).map(|outcome| outcome.to_string());
    }
    said
}

#[test]
fn a_call_that_fails_half_way_is_kept_undone_or_open() {
    let steps = "
        0: map fixed w1 1p rw- private anonymous
        0: protect w1 2p r--
        0: store byte w1 0x1";
    let as_linux = || Model::new(Some(Halfway::Kept));
    let undone = || Model::new(Some(Halfway::Undone));
    assert_eq!(last(as_linux(), steps).as_deref(), Ok("SIGSEGV"));
    assert_eq!(last(undone(), steps).as_deref(), Ok("ok"));
    let until = steps.rsplit_once('\n').expect("lines").0;
    let open = "what a call leaves behind when it fails half-way";
    assert_eq!(last(Model::new(None), until), Err(open));
    // The undefined call has changed nothing.
    assert_eq!(last(Model::new(None), steps).as_deref(), Ok("ok"));
    // As long as nothing was changed the error is defined.
    let hole_first = "0: map fixed w2 1p rw- private anonymous\n0: protect w1 2p r--";
    assert_eq!(last(Model::new(None), hole_first).as_deref(), Ok("ENOMEM"));
}

#[test]
fn what_was_freed_is_old_or_zero_until_it_is_written() {
    let steps = "
        0: map fixed w1 1p rw- private anonymous
        0: store byte w1 0x7
        0: advise w1 1p free
        0: load byte w1";
    assert_eq!(last(Model::default(), steps).as_deref(), Ok("0x7 or 0x0"));
    let written = format!("{steps}\n0: store word w1 0x9\n0: load word w1");
    assert_eq!(last(Model::default(), &written).as_deref(), Ok("0x9"));
    let values = |values: &[u64]| Outcome::OneOf(values.to_vec());
    assert!(values(&[7, 0]).agrees(&Outcome::Value(0)));
    assert!(!values(&[7, 0]).agrees(&Outcome::Value(1)));
}

#[test]
fn handles_name_only_what_is_mapped() {
    let undefined = Err("the handle has no mapping");
    let steps = "0: map anywhere 2p rw- private anonymous as h1\n0: unmap h1:1 1p";
    let load = |page: u32| format!("{steps}\n0: load byte h1:{page}");
    assert_eq!(last(Model::default(), &load(0)).as_deref(), Ok("0x0"));
    assert_eq!(last(Model::default(), &load(1)), undefined);
    assert_eq!(last(Model::default(), "0: unmap h7:0 1p"), undefined);
}

#[test]
fn a_length_that_wraps_at_some_heaps_is_undefined() {
    let unlock = |bytes: &str| last(Model::default(), &format!("0: unlock b13+2446 {bytes}"));
    let undefined = Err("it leaves its place");
    assert_eq!(unlock("0xfffffffeffff1672"), undefined);
    assert_eq!(unlock("0xffffffffffff0000"), undefined);
    // These never wrap, or always do.
    assert_eq!(unlock("0x800000000000").as_deref(), Ok("ENOMEM"));
    assert_eq!(unlock("0xffffffffffff8000").as_deref(), Ok("EINVAL"));
}

/// The model, as a system that undoes failed calls.
struct Undoing(Model);

impl System for Undoing {
    fn name(&self) -> &str {
        "undoing"
    }

    fn halfway(&self) -> Halfway {
        Halfway::Undone
    }

    fn reset(&mut self) -> Result<(), Broken> {
        self.0.reset()
    }

    fn perform(&mut self, step: &Step) -> Result<Outcome, Broken> {
        self.0.perform(step)
    }

    fn finish(&mut self) -> Result<Option<String>, Broken> {
        Ok(Some("a frame is lost".into()))
    }
}

#[test]
fn systems_that_differ_half_way_agree_on_the_rest() {
    let mut undoing = Undoing(Model::new(Some(Halfway::Undone)));
    let mut linux = Model::default();
    let steps = "
        0: map fixed w1 1p rw- private anonymous
        0: protect w1 2p r--
        0: store byte w1 0x1";
    let steps = text::parse(steps).expect("steps");
    let mut both: [&mut dyn System; 2] = [&mut linux, &mut undoing];
    assert!(model_for(&both).clone().judge(&steps[0]).is_ok());
    // An error found at the end counts as a difference.
    let found = play(&steps, &mut both).expect("models do not break");
    let found = found.expect_err("a frame is lost");
    let text = found.to_string();
    assert!(text.ends_with("# undoing: a frame is lost\n"), "{text}");
    let played = play(&steps, &mut [&mut Model::default(), &mut linux]);
    let played = played.expect("models do not break").expect("they agree");
    assert_eq!((played.compared, played.left_out), (3, 0));
}
