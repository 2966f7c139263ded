//! The steps on which the two lists rest, named so that a checker can break them.

/// The steps that make the lists sound. [`Sound`] has them all; this crate's models leave one out
/// at a time and show that the checker finds it.
#[doc(hidden)]
pub trait Steps: Send + Sync + 'static {
    /// A finish hands its generation to an older open block instead of publishing it.
    const HANDS_ON: bool = true;

    /// A waiter checks again under the chain's lock before it sleeps.
    const CHECKS_AGAIN: bool = true;

    /// An element that is leaving is marked, so that it is neither linked behind nor raised.
    const MARKS: bool = true;

    /// A waiter's last check is an exchange on the head, not a load.
    const EXCHANGES: bool = true;
}

/// The sound steps.
#[doc(hidden)]
pub enum Sound {}

impl Steps for Sound {}
