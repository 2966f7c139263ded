//! Recordings that tests make event by event.
#![allow(dead_code, reason = "each test file uses a part")]

use recording::{
    Advice, Birth, Call, Event, FaultKind, Place, Process, Prot, Recording, Sharing, Thread,
    WaitFor, What,
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
        self.thread_of(number)
    }

    pub fn thread_of(&mut self, process: u32) -> u32 {
        let number = self.0.threads.len() as u32;
        let is_first = self
            .0
            .threads
            .iter()
            .all(|thread| thread.process != process);
        self.0.threads.push(Thread {
            tid: if is_first {
                self.0.processes[process as usize].pid
            } else {
                1000 + number
            },
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

/// All kinds of events: threads that wait for each other's memory, a copy that writes what it has
/// inherited, a program executed, and calls of each kind.
pub fn everything() -> Recording {
    let mut program = Program::new();
    program.add(
        0,
        What::Given {
            call: anonymous(0, 16, None),
        },
    );
    program.fault(0, 0, 0, 16);
    let worker = program.thread_of(0);
    program.add(0, What::Start { thread: worker });
    // The worker's mapping is used by the first thread, and the other way round.
    program
        .map(worker, 1, 8)
        .fault(0, 1, 0, 4)
        .fault(worker, 1, 4, 4);
    program.unmap(0, 1, 2, 3).fault(worker, 1, 6, 1);
    program.call(
        worker,
        Call::Protect {
            at: at(0, 4),
            length: 2 * PAGE,
            prot: Prot::default(),
        },
    );
    program.call(
        worker,
        Call::Protect {
            at: at(0, 4),
            length: 2 * PAGE,
            prot: BOTH,
        },
    );
    program
        .call(worker, anonymous(2, 2, Some(at(0, 8))))
        .fault(worker, 2, 0, 2);
    for advice in [
        Advice::Discard,
        Advice::PopulateWrite,
        Advice::Free,
        Advice::Cold,
        // MADV_SEQUENTIAL, MADV_DONTDUMP, MADV_DODUMP.
        Advice::Other(2),
        Advice::Other(16),
        Advice::Other(17),
    ] {
        program.call(
            0,
            Call::Advise {
                at: at(0, 0),
                length: 4 * PAGE,
                advice,
            },
        );
    }
    program
        .call(
            0,
            Call::Break {
                mapping: 3,
                length: 8 * PAGE,
            },
        )
        .fault(0, 3, 0, 8);
    program.call(
        0,
        Call::Break {
            mapping: 3,
            length: 2 * PAGE,
        },
    );
    program.map(0, 4, 4).fault(0, 4, 0, 4);
    program.call(
        0,
        Call::Remap {
            at: at(4, 0),
            length: 4 * PAGE,
            new_length: 32 * PAGE,
            to: Some(5),
        },
    );
    program.fault(0, 5, 16, 16);
    program.call(
        0,
        Call::Lock {
            at: at(5, 0),
            length: PAGE,
        },
    );
    program.call(
        0,
        Call::Unlock {
            at: at(5, 0),
            length: PAGE,
        },
    );
    program.call(
        0,
        Call::InCore {
            at: at(5, 0),
            length: PAGE,
        },
    );
    let child = program.process(Birth::Forked);
    program.add(
        0,
        What::Fork {
            thread: child,
            borrows: false,
        },
    );
    program.fault(child, 0, 0, 4).fault(0, 0, 0, 4);
    program
        .add(child, What::Exec)
        .map(child, 6, 4)
        .fault(child, 6, 0, 4);
    program
        .add(child, What::Wake { thread: 0 })
        .add(child, What::Exit);
    let on = WaitFor::Child;
    program.add(
        0,
        What::Wait {
            on,
            nanoseconds: 1000,
            by: Some((child, 0)),
        },
    );
    program.add(
        worker,
        What::Wait {
            on: WaitFor::Time,
            nanoseconds: 20_000,
            by: None,
        },
    );
    program
        .add(worker, What::Exit)
        .unmap(0, 5, 0, 32)
        .add(0, What::Exit);
    program.0
}

/// A first thread that starts two workers, maps their stacks and the memory that they share, wakes
/// the first of them, and waits for that one's end. Each worker uses its stack, a mapping of its
/// own, and the shared one.
pub fn pool() -> Recording {
    let mut program = Program::new();
    program.map(0, 0, 64);
    for worker in [1, 2] {
        program.map(0, 10 * worker, 4);
        program.thread_of(0);
        program.0.threads[worker as usize].name = format!("worker-{worker}");
        program.add(0, What::Start { thread: worker });
        program.fault(worker, 10 * worker, 0, 2);
        program
            .map(worker, 10 * worker + 1, 8)
            .fault(worker, 10 * worker + 1, 0, 8);
        program.fault(worker, 0, 8 * u64::from(worker), 1);
        let advice = Advice::Discard;
        program.call(
            worker,
            Call::Advise {
                at: at(0, 8),
                length: 4096,
                advice,
            },
        );
    }
    program.add(0, What::Wake { thread: 1 });
    let on = WaitFor::Futex;
    program.add(
        1,
        What::Wait {
            on,
            nanoseconds: 5,
            by: Some((0, 0)),
        },
    );
    program.add(1, What::Wake { thread: 2 });
    program.add(
        2,
        What::Wait {
            on,
            nanoseconds: 5,
            by: Some((1, 0)),
        },
    );
    program
        .add(1, What::Wake { thread: 0 })
        .add(1, What::Exit)
        .add(2, What::Exit);
    program.add(
        0,
        What::Wait {
            on,
            nanoseconds: 5,
            by: Some((1, 1)),
        },
    );
    program.0
}
