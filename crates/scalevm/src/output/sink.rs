//! The destination of records: lines on stdout or in a file, a store, or both.

use crate::stdout;
use bench::Failure;
use stats::record::Record;
use stats::store::{StoreError, Writer};
use std::io::Write;
use std::path::Path;

/// Takes records.
pub struct Sink<'a> {
    lines: Option<&'a mut dyn Write>,
    /// The name of the lines' file.
    file: &'static str,
    store: Option<Writer>,
    failure: Option<StoreError>,
    label: Option<String>,
}

impl<'a> Sink<'a> {
    /// Lines only, to this file.
    pub fn lines(file: &'static str, lines: &'a mut dyn Write) -> Self {
        Sink {
            lines: Some(lines),
            file,
            store: None,
            failure: None,
            label: None,
        }
    }

    /// The requested sink; none if there is none. An unwritable store is found here, before there
    /// is anything to lose.
    pub fn open<W: Write>(
        lines: Option<&'a mut W>,
        store: Option<&Path>,
        label: Option<&str>,
    ) -> Result<Option<Self>, Failure> {
        let store = store.map(Writer::create).transpose()?;
        let wanted = lines.is_some() || store.is_some();
        if !wanted && label.is_some() {
            let why = "--label requires --store, or --json with run or sweep";
            return Err(Failure::Unavailable(why.into()));
        }
        Ok(wanted.then(|| Sink {
            lines: lines.map(|lines| lines as &mut dyn Write),
            file: stdout::NAME,
            store,
            failure: None,
            label: label.map(str::to_owned),
        }))
    }

    /// The user's name for the measured version.
    pub fn label(&self) -> Option<&str> {
        self.label.as_deref()
    }

    /// Writes a record. If the store fails the measurement goes on, as stdout may still show it;
    /// [`Sink::finish`] reports that.
    pub fn take(&mut self, record: &Record) {
        if let Some(lines) = &mut self.lines {
            let written = match record.measurement().subject.profile {
                // Equal seeds print equal bytes; in a store the time orders the runs.
                Some(_) => record.clone().timeless().write(lines),
                None => record.write(lines),
            };
            stdout::written(self.file, written);
        }
        let store = self.store.as_mut().filter(|_| self.failure.is_none());
        self.failure = match store {
            Some(store) => store.append(record).err(),
            None => self.failure.take(),
        };
    }

    /// Says where the results are, or why they are missing.
    pub fn finish(self) -> Result<(), Failure> {
        if let Some(failure) = self.failure {
            return Err(failure.into());
        }
        if let Some(store) = self.store.filter(|store| !store.is_empty()) {
            eprintln!("scalevm: kept in {}", store.path().display());
        }
        Ok(())
    }
}
