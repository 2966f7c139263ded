//! Recordings that tests make event by event.

#![allow(dead_code)] // not each test uses all

use recording::{
    Birth, Call, Event, FaultKind, Place, Process, Prot, Recording, Sharing, Thread, What,
};

pub const PAGE: u64 = 4096;
pub const BOTH: Prot = Prot {
    read: true,
    write: true,
    execute: false,
};

/// A recording in the making. Each event is a microsecond after the one before.
pub struct Program(pub Recording);

impl Program {
    /// A program of a process with one thread.
    pub fn new() -> Self {
        let mut program = Program(Recording {
            page: PAGE as u32,
            ..Recording::default()
        });
        program.process(Birth::Existed);
        program
    }

    /// Adds a process with a thread; returns that.
    pub fn process(&mut self, birth: Birth) -> u32 {
        let number = self.0.processes.len() as u32;
        self.0.processes.push(Process {
            pid: 100 + number,
            name: "program".into(),
            birth,
        });
        self.thread(number)
    }

    pub fn thread(&mut self, process: u32) -> u32 {
        let number = self.0.threads.len() as u32;
        self.0.threads.push(Thread {
            tid: 1000 + number,
            process,
            name: format!("thread {number}"),
        });
        number
    }

    pub fn add(&mut self, thread: u32, what: What) -> &mut Self {
        let at = 1000 * self.0.events.len() as u64;
        let event = Event {
            at,
            thread,
            computed: 500,
            what,
        };
        self.0.events.push(event);
        self
    }

    pub fn call(&mut self, thread: u32, call: Call) -> &mut Self {
        let what = What::Call {
            call,
            error: 0,
            parts: Vec::new(),
        };
        self.add(thread, what)
    }

    pub fn map(&mut self, thread: u32, mapping: u32, pages: u64) -> &mut Self {
        self.call(thread, anonymous(mapping, pages, None))
    }

    pub fn fault(&mut self, thread: u32, mapping: u32, page: u64, pages: u32) -> &mut Self {
        let what = What::Fault {
            at: at(mapping, page),
            pages,
            write: true,
            kind: FaultKind::Missing,
            in_kernel: false,
        };
        self.add(thread, what)
    }

    pub fn unmap(&mut self, thread: u32, mapping: u32, page: u64, pages: u64) -> &mut Self {
        let (at, length) = (at(mapping, page), pages * PAGE);
        self.call(thread, Call::Unmap { at, length })
    }
}

pub fn at(mapping: u32, page: u64) -> Place {
    let offset = page * PAGE;
    Place { mapping, offset }
}

pub fn anonymous(mapping: u32, pages: u64, over: Option<Place>) -> Call {
    Call::Map {
        mapping,
        length: pages * PAGE,
        prot: BOTH,
        sharing: Sharing::Private,
        file: None,
        over,
        populate: false,
        no_reserve: false,
        huge: false,
    }
}
