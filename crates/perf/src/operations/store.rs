//! The file that a recording goes to while it is made.

use recording::{Error, File, Process, Recording, Thread, Writer};
use std::io::Write;

/// Writes what is new of a recording.
pub(super) struct Store<W> {
    writer: Writer<W>,
    processes: Vec<Process>,
    threads: Vec<Thread>,
    files: Vec<File>,
    pub events: u64,
}

impl<W: Write> Store<W> {
    /// Begins with what is known of the recording when it begins.
    pub fn new(to: W, recording: &Recording) -> Result<Store<W>, Error> {
        let mut writer = Writer::new(to, &recording.environment, recording.page)?;
        if let Some(cost) = recording.cost {
            writer.cost(cost)?;
        }
        Ok(Store {
            writer,
            processes: Vec::new(),
            threads: Vec::new(),
            files: Vec::new(),
            events: 0,
        })
    }

    /// Writes what has changed, and takes the events.
    pub fn put(&mut self, recording: &mut Recording) -> Result<(), Error> {
        let writer = &mut self.writer;
        update(&mut self.processes, &recording.processes, |number, one| {
            writer.process(number, one)
        })?;
        update(&mut self.threads, &recording.threads, |number, one| {
            writer.thread(number, one)
        })?;
        update(&mut self.files, &recording.files, |number, one| {
            writer.file(number, one)
        })?;
        self.events += recording.events.len() as u64;
        recording
            .events
            .drain(..)
            .try_for_each(|event| writer.event(&event))
    }

    /// Writes what is left, and the end.
    pub fn finish(mut self, recording: &mut Recording) -> Result<u64, Error> {
        self.put(recording)?;
        self.writer.lost(recording.lost)?;
        self.writer.finish(recording.nanoseconds)?;
        Ok(self.events)
    }
}

/// Makes `known` what is `now`, and passes on what differs, with its number.
fn update<T: Clone + PartialEq>(
    known: &mut Vec<T>,
    now: &[T],
    mut write: impl FnMut(u32, &T) -> Result<(), Error>,
) -> Result<(), Error> {
    for (number, one) in now.iter().enumerate() {
        if known.get(number) != Some(one) {
            write(number as u32, one)?;
            match known.get_mut(number) {
                Some(old) => old.clone_from(one),
                None => known.push(one.clone()),
            }
        }
    }
    Ok(())
}
