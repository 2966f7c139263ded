//! Programs in processes.

use super::family::Family;
use super::fork::Inherited;
use super::{HOOKS, Handlers, Limits, PROCESSES, Process, SignalStack, Status, Thread, script};
use crate::errno::Errno;
use crate::fs::{Descriptors, Executable, Open, OpenFile, Path, ROOT, find, path_of};
use crate::program::{Program, Start};
use crate::system::{Space, system};
use crate::users::{Owned, Users};
use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::sync::atomic::Ordering;
use linux_raw_sys::general::O_RDWR;
use machine::Clock;
use metal::{Metal, TrapFrame};

/// Replaces the thread's program.
///
/// # Errors
/// If the file is no program, nothing has changed. A later failure ends the process.
pub fn execute(thread: &mut Thread, start: Start) -> Result<(), Errno> {
    let process = thread.process.clone();
    let (inode, start) = script::resolve(&process, start)?;
    let object = inode.object().ok_or(Errno::ACCES)?;
    let executable = Executable::new(&inode)?;
    let owned = inode.owned();
    // Not written until it is loaded.
    let mut _interpreter = None;
    let program = Program::read(object, |path| {
        let inode = script::executable(&process, path)?;
        _interpreter = Some(Executable::new(&inode)?);
        inode.object().cloned().ok_or(Errno::ACCES)
    })?;
    end_others(thread);
    let is_privileged = take_rights(&process, owned);
    thread.leave_words();
    thread.shared.become_first();
    close_private(&process);
    process.handlers.lock().forget();
    process.job.has_executed.store(true, Ordering::Relaxed);
    process.end_as_usual();
    let executable = Arc::new(executable.at(absolute(&process, &start.path)));
    let before = core::mem::replace(&mut *process.program.lock(), executable);
    drop(before);
    thread.shared.set_name(&start.path);
    let loaded = thread.empty_space().and_then(|()| {
        process.give_memory_back();
        (HOOKS.memory_given_up)();
        let users = process.users.lock().clone();
        program.load(&thread.space, &start, &users, is_privileged)
    });
    match loaded {
        Ok(begin) => {
            *thread.frame = TrapFrame::new(begin.instruction, begin.stack);
            thread.set_thread_pointer(0);
            thread.signal_stack = SignalStack::default();
            *process.start.lock() = Arc::new(start);
        }
        Err(_) => process.end(Status::killed(super::Signal::KILL)),
    }
    Ok(())
}

/// The bits of a mode that give a program its owner's rights, and its group's.
const OF_USER: u32 = 0o4000;
const OF_GROUP: u32 = 0o2010;

/// Gives the process the rights of its new program. Returns true if these are the file's owner's.
fn take_rights(process: &Process, file: Owned) -> bool {
    let mut users = process.users.lock();
    let before = users.clone();
    let has = |bits| file.mode & bits == bits && !process.is_confined.load(Ordering::Relaxed);
    let user = if has(OF_USER) {
        file.user
    } else {
        users.user.effective
    };
    let group = if has(OF_GROUP) {
        file.group
    } else {
        users.group.effective
    };
    users.user.become_(user);
    users.group.become_(group);
    let has_changed = before.user.effective != user || before.group.effective != group;
    let differs = user != users.user.real || group != users.group.real;
    process
        .is_dumpable
        .store(!(has_changed || differs), Ordering::Relaxed);
    differs
}

/// The path, made absolute.
fn absolute(process: &Process, path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") {
        return path.to_vec();
    }
    let directory = process.directory.lock().clone();
    let above = path_of(&directory).unwrap_or_default();
    let path = path.strip_prefix(b"./").unwrap_or(path);
    let above = above.strip_suffix(b"/").unwrap_or(&above);
    [above, b"/", path].concat()
}

/// Closes the descriptors that a new program does not inherit.
fn close_private(process: &Process) {
    let mut from = 0;
    loop {
        let taken = process.files.lock().take_private(from);
        let Some((number, descriptor)) = taken else {
            return;
        };
        drop(descriptor);
        from = number + 1;
    }
}

/// Ends the other threads of the process, and waits until they have ended.
fn end_others(thread: &Thread) {
    let others = || {
        let mut threads = thread.process.threads.lock().clone();
        threads.retain(|other| other.tid() != thread.shared.tid());
        threads
    };
    // Repeated, because they may make others. A process that ends does not wait.
    while thread.process.ending().is_none() {
        let others = others();
        if others.is_empty() {
            return;
        }
        for other in others {
            other.dies.store(true, Ordering::SeqCst);
            other.interrupt();
        }
        Metal::sleep_until(Metal::now() + 1_000_000);
    }
}

/// Makes the first process, which runs `/init` with the console as its input and output.
pub fn first() -> Result<Thread, Errno> {
    let root = ROOT.clone();
    let space = Arc::new(Space::new(&system().vm)?);
    let mut files = Descriptors::default();
    let console = Path {
        from: root.clone(),
        names: b"/dev/console",
    };
    let console = OpenFile::new(Open::Inode(find(&console, true)?), O_RDWR);
    for number in 0..3 {
        files.put(number, console.clone(), false)?;
    }
    let inherited = Inherited {
        files,
        directory: root,
        program: Arc::default(),
        start: Arc::default(),
        handlers: Handlers::new(),
        limits: Limits::new(),
        umask: 0o022,
        users: Users::default(),
        is_dumpable: true,
        is_confined: false,
        job: None,
    };
    let process = Process::new(space.clone(), Family::new(Weak::new(), 0), inherited);
    PROCESSES.add(&process);
    let pid = process.pid;
    let mut thread = Thread::new(process, space, pid, Box::new(TrapFrame::new(0, 0)))?;
    let mut start = Start::default();
    start.path.extend_from_slice(b"/init");
    start.arguments.push(&start.path)?;
    start.environment.push(b"HOME=/")?;
    start.environment.push(b"TERM=linux")?;
    execute(&mut thread, start)?;
    Ok(thread)
}
