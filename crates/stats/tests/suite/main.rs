//! Verdicts, records and the store of results.

mod change;
mod environment;
mod history;
mod ministat;
mod record;
mod store;
mod verdict;
