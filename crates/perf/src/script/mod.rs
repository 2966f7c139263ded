//! Recordings of the program `perf`: what `perf script` prints becomes a profile, with the names
//! and the analysis that scalevm's own recordings have.
//!
//! A file `perf.data` has addresses, not names. `perf script` finds these in the kernel's symbols
//! and in its cache of programs, so it reads such files here, too; crates that parse them do not.

mod functions;
mod line;
mod pace;
mod perf;
mod replay;

use flate2::bufread::MultiGzDecoder;
use line::Frame;
use profile::Profile;
use replay::Replay;
use stats::record::{Mode, Subject};
use stats::{InputError, printable};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read};

/// The profile in the file `name` with these `bytes`: a `perf.data`, or the text that `perf script`
/// prints, possibly compressed by gzip; none if it is none of these.
pub fn parse(name: &str, bytes: &[u8]) -> Result<Option<Profile>, InputError> {
    const DATA: [&[u8]; 3] = [b"PERFILE2", b"2ELIFREP", b"PERFFILE"];
    const GZIP: &[u8] = &[0x1f, 0x8b];
    if DATA.iter().any(|magic| bytes.starts_with(magic)) {
        return perf::script(name, |text| read(name, text)).map(Some);
    }
    if bytes.starts_with(GZIP) {
        return read(name, BufReader::new(MultiGzDecoder::new(bytes))).map(Some);
    }
    let is_script = first_line(bytes).is_some_and(|line| line::header(&line).is_some());
    is_script.then(|| read(name, bytes)).transpose()
}

/// The first line that is neither empty nor a comment.
fn first_line(bytes: &[u8]) -> Option<String> {
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let line = lines.find(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"))?;
    Some(String::from_utf8_lossy(line).into_owned())
}

/// Reads the text of `perf script`.
fn read(name: &str, mut text: impl BufRead) -> Result<Profile, InputError> {
    let unreadable = |source| InputError::Unreadable {
        file: name.to_owned(),
        source,
    };
    let mut script = Script::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut part = text.by_ref().take(LONGEST);
        if part.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            break;
        }
        script.line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
    }
    script.profile().ok_or_else(|| InputError::Whole {
        file: name.to_owned(),
        reason: "has no event that `perf script` prints with its thread, time and name".to_owned(),
    })
}

/// Bytes of a line at most.
const LONGEST: u64 = 1 << 16;

/// The text so far.
#[derive(Default)]
struct Script {
    replay: Option<Replay>,
    /// The first line of the event whose frames are being read, and these.
    event: Option<String>,
    frames: Vec<String>,
    /// The processes of threads, as far as records of births and names told.
    processes: HashMap<u32, u32>,
    /// Lines that are none of an event.
    strange: u64,
}

impl Script {
    fn line(&mut self, line: &str) {
        if line.starts_with('#') {
            return;
        }
        if line.trim().is_empty() {
            self.finish();
        } else if line::header(line).is_some() {
            self.finish();
            self.event = Some(line.to_owned());
        } else if self.event.is_some() && line::frame(line).is_some() {
            self.frames.push(line.to_owned());
        } else {
            self.strange += 1;
        }
    }

    /// Passes the event on, now that all of its lines are read.
    fn finish(&mut self) {
        let event = self.event.take();
        let frames = std::mem::take(&mut self.frames);
        let Some(mut header) = event.as_deref().and_then(line::header) else {
            return;
        };
        if let Some((pid, tid)) = line::named(&header) {
            self.processes.insert(tid, pid);
        }
        header.pid = header
            .pid
            .or_else(|| self.processes.get(&header.tid).copied());
        // What perf makes up for tasks that ran before has no time.
        if header.time == 0 {
            return;
        }
        let mut stack: Vec<Frame<'_>> =
            frames.iter().filter_map(|line| line::frame(line)).collect();
        // Without call chains the one function is on the event's line.
        if stack.is_empty() {
            stack.extend(line::frame(header.rest));
        }
        let replay = self.replay.get_or_insert_with(|| Replay::new(header.time));
        replay.take(&header, &stack);
    }

    /// The profile; none without an event.
    fn profile(mut self) -> Option<Profile> {
        self.finish();
        let replay = self.replay?;
        let subject = subject(&replay.processes);
        let recording = replay.recording();
        let seconds = recording.span().as_secs_f64();
        let profile = Profile::new(subject, seconds, "");
        let mut profile = recording.fill(profile);
        recording.judge(&mut profile);
        if self.strange > 0 {
            let lines = self.strange;
            profile
                .notes
                .push(format!("lines that are not understood: {lines}"));
        }
        Some(profile)
    }
}

/// The processes of a recording, by the names of those with the most samples.
fn subject(processes: &BTreeMap<u32, (String, u64)>) -> Subject {
    const NAMED: usize = 3;
    let mut samples: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in processes.values() {
        *samples.entry(name).or_default() += count;
    }
    let mut names: Vec<(&str, u64)> = samples.into_iter().collect();
    names.sort_by_key(|&(_, count)| Reverse(count));
    let shown = names.iter().take(NAMED).map(|(name, _)| printable(name));
    let mut shown: Vec<String> = shown.map(Cow::into_owned).collect();
    shown.extend((names.len() > NAMED).then(|| "…".to_owned()));
    let name = format!("recording of {}", shown.join(", "));
    Subject::new(&name, "os", processes.len().max(1) as u32, Mode::Processes)
}

#[cfg(test)]
mod tests;
