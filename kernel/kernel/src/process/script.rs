//! Scripts: files that name their interpreter after `#!`.

use super::Process;
use crate::errno::Errno;
use crate::fs::{Inode, Kind, find};
use crate::program::{Start, Texts};
use crate::system::ObjectRef;
use crate::users::RUN;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

/// The most scripts that interpret each other.
const DEPTH: usize = 4;
/// The most bytes of the first line.
const LINE: usize = 256;
const MARK: &[u8] = b"#!";

/// The file of the program to be run, and its arguments.
pub(super) fn resolve(process: &Process, mut start: Start) -> Result<(Arc<Inode>, Start), Errno> {
    for _ in 0..=DEPTH {
        let inode = executable(process, &start.path)?;
        match first_line(inode.object().ok_or(Errno::ACCES)?)? {
            Some(line) => start = reader(&line, start)?,
            None => return Ok((inode, start)),
        }
    }
    Err(Errno::LOOP)
}

/// The file at a path; an error if it may not be executed.
pub(super) fn executable(process: &Process, path: &[u8]) -> Result<Arc<Inode>, Errno> {
    let inode = find(&process.path(path), true)?;
    match inode.kind {
        Kind::File(_) => inode.refuse(RUN).map(|()| inode),
        _ => Err(Errno::ACCES),
    }
}

/// The line after `#!`; `None` if the file is no script.
fn first_line(object: &ObjectRef) -> Result<Option<Vec<u8>>, Errno> {
    let mut line = vec![0; LINE];
    let count = object.read(0, &mut line)?;
    line.truncate(count);
    if !line.starts_with(MARK) {
        return Ok(None);
    }
    let end = line.iter().position(|&byte| byte == b'\n');
    let end = end.unwrap_or(line.len());
    Ok(Some(line[MARK.len()..end].to_vec()))
}

/// The start of the program that the line names, with one argument at most, and the script's path.
fn reader(line: &[u8], script: Start) -> Result<Start, Errno> {
    let line = line.trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace);
    let (path, argument) = line.split_at(end.unwrap_or(line.len()));
    if path.is_empty() {
        return Err(Errno::NOEXEC);
    }
    let mut arguments = Texts::default();
    arguments.push(path)?;
    let argument = argument.trim_ascii();
    if !argument.is_empty() {
        arguments.push(argument)?;
    }
    arguments.push(&script.path)?;
    let mut others = script.arguments.iter().skip(1);
    others.try_for_each(|text| arguments.push(text))?;
    Ok(Start {
        arguments,
        environment: script.environment,
        path: path.to_vec(),
    })
}
