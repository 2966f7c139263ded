//! A system whose memory is real, page by page, with processes that have copies of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use workloads::{
    Backing, Call, Child, Counter, Daemon, Error, Files, Program, Prot, System, Workload, compile,
};

pub const PAGE: usize = 4096;
pub const ENOMEM: i32 = 12;
const HEAP: usize = 1 << 32;

/// A file: its length, and its bytes by position; missing ones are 0.
#[derive(Debug, Default)]
pub struct Content {
    len: usize,
    bytes: BTreeMap<usize, u8>,
}

type File = Rc<RefCell<Content>>;

impl Content {
    /// The byte at the beginning of a page.
    fn page(&self, number: usize) -> u8 {
        self.bytes.get(&(number * PAGE)).copied().unwrap_or(0)
    }
}

/// One page of memory.
#[derive(Clone)]
pub struct Mapped {
    prot: Prot,
    /// Its place in a file.
    file: Option<(File, usize)>,
    shared: bool,
    /// Its content, if it is the process's own.
    own: Option<u8>,
    /// True if another process may have the same page since a fork.
    forked: bool,
}

impl Mapped {
    /// Returns true if it has been written.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }
}

/// A flaw of a system.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// Private copies go to the file.
    LeakyCopies,
    /// Memory is lost on the way: this many writes are done, and the next is not.
    LostWrite(usize),
    /// A compiler compiles the unit before.
    WrongUnit,
    /// A child ends badly.
    Crash,
    /// A child's memory is its parent's.
    SharedFork,
}

/// The state that all processes share.
#[derive(Default)]
pub struct Kernel {
    /// How often each call was made.
    pub calls: BTreeMap<&'static str, usize>,
    /// The number of calls and accesses that were made.
    pub count: usize,
    pub writes: usize,
    pub faults: usize,
    fail_at: Option<usize>,
    flaw: Option<Flaw>,
    pub units: Vec<u64>,
    pub computed: u64,
}

/// A process whose memory is real, by its pages.
pub struct Memory {
    pub kernel: Rc<RefCell<Kernel>>,
    inputs: Rc<Files<File>>,
    pub pages: BTreeMap<usize, Mapped>,
    top: usize,
    heap_end: usize,
    daemon: Option<Daemon>,
    children: Vec<u8>,
}

impl Memory {
    /// A process of a system that works.
    pub fn new() -> Self {
        let inputs = Files::try_new(|input| {
            let pages = 0..input.size() / PAGE;
            let bytes = pages.map(|page| (page * PAGE, input.byte(page))).collect();
            let len = input.size();
            Ok::<_, ()>(Rc::new(RefCell::new(Content { len, bytes })))
        });
        Memory {
            kernel: Rc::default(),
            inputs: Rc::new(inputs.expect("no file fails")),
            pages: BTreeMap::new(),
            top: PAGE,
            heap_end: HEAP,
            daemon: None,
            children: Vec::new(),
        }
    }

    /// A process in which the mail server has been started.
    pub fn family() -> Self {
        let mut memory = Memory::new();
        let inputs = memory.inputs.clone();
        memory.daemon = Some(Daemon::start(&mut memory, &inputs).expect("no call fails"));
        memory.kernel.take();
        memory
    }

    /// Makes the call of this number fail, or gives the system this flaw.
    pub fn spoil(&mut self, fail_at: Option<usize>, flaw: Option<Flaw>) {
        let mut kernel = self.kernel.borrow_mut();
        (kernel.fail_at, kernel.flaw) = (fail_at, flaw);
    }

    /// Runs `count` iterations of a workload; returns their result, and checks that they have been
    /// counted.
    pub fn run(&mut self, workload: &Workload, count: u64) -> Result<(), Error> {
        let tick = Counter::with_limit(count);
        workload.run(self, &tick)?;
        assert_eq!(tick.get(), count);
        Ok(())
    }

    /// A process with other memory than this one's, or a copy of it.
    fn child(&mut self, copy: bool) -> Self {
        self.pages.values_mut().for_each(|page| page.forked = true);
        let pages = if copy {
            self.pages.clone()
        } else {
            BTreeMap::new()
        };
        Memory {
            kernel: self.kernel.clone(),
            inputs: self.inputs.clone(),
            pages,
            top: self.top,
            heap_end: if copy { self.heap_end } else { HEAP },
            daemon: self.daemon,
            children: Vec::new(),
        }
    }

    fn ask(&self, call: Call, name: &'static str) -> Result<(), Error> {
        let mut kernel = self.kernel.borrow_mut();
        *kernel.calls.entry(name).or_default() += 1;
        kernel.count += 1;
        if kernel.fail_at == Some(kernel.count - 1) {
            Err(Error::Failed(call, ENOMEM))
        } else {
            Ok(())
        }
    }

    fn flaw(&self) -> Option<Flaw> {
        self.kernel.borrow().flaw
    }

    fn pages_of(&self, range: Range<usize>) -> Vec<usize> {
        let pages: Vec<usize> = self.pages.range(range.clone()).map(|(&at, _)| at).collect();
        assert_eq!(pages.len(), range.len() / PAGE, "{range:#x?} has holes");
        pages
    }
}

impl System for Memory {
    type File = File;

    fn page_size(&self) -> usize {
        PAGE
    }

    fn map(&mut self, len: usize, prot: Prot, backing: Backing<'_, File>) -> Result<usize, Error> {
        self.ask(Call::Map, "map")?;
        let start = self.top;
        self.top += len + PAGE;
        for page in 0..len / PAGE {
            let file = match backing {
                Backing::Anonymous | Backing::SharedAnonymous => None,
                Backing::PrivateFile(file) | Backing::SharedFile(file) => {
                    assert!(page < file.borrow().len / PAGE, "behind the file's end");
                    Some((file.clone(), page))
                }
            };
            let mapped = Mapped {
                prot,
                file,
                shared: matches!(backing, Backing::SharedFile(_)),
                own: None,
                forked: false,
            };
            self.pages.insert(start + page * PAGE, mapped);
        }
        Ok(start)
    }

    fn unmap(&mut self, start: usize, len: usize) -> Result<(), Error> {
        self.ask(Call::Unmap, "unmap")?;
        for page in self.pages_of(start..start + len) {
            self.pages.remove(&page);
        }
        Ok(())
    }

    fn protect(&mut self, start: usize, len: usize, prot: Prot) -> Result<(), Error> {
        self.ask(Call::Protect, "protect")?;
        for page in self.pages_of(start..start + len) {
            self.pages.get_mut(&page).expect("mapped").prot = prot;
        }
        Ok(())
    }

    fn discard(&mut self, _: usize, _: usize) -> Result<(), Error> {
        Err(Error::Unsupported(Call::Discard))
    }

    fn program_break(&mut self) -> Result<usize, Error> {
        Ok(HEAP)
    }

    fn set_program_break(&mut self, to: usize) -> Result<(), Error> {
        self.ask(Call::Brk, "brk")?;
        for page in (self.heap_end..to).step_by(PAGE) {
            let mapped = Mapped {
                prot: Prot::ReadWrite,
                file: None,
                shared: false,
                own: None,
                forked: false,
            };
            self.pages.insert(page, mapped);
        }
        self.heap_end = to;
        Ok(())
    }

    fn file(&mut self, len: usize) -> Result<File, Error> {
        self.ask(Call::File, "file")?;
        let bytes = BTreeMap::new();
        Ok(Rc::new(RefCell::new(Content { len, bytes })))
    }

    fn write(&mut self, address: usize, value: u8) -> Result<(), Error> {
        self.ask(Call::Touch, "write")?;
        let flaw = self.flaw();
        let mut kernel = self.kernel.borrow_mut();
        kernel.writes += 1;
        let lost = flaw == Some(Flaw::LostWrite(kernel.writes - 1));
        let page = self.pages.get_mut(&address).expect("mapped");
        assert_eq!(page.prot, Prot::ReadWrite, "no right at {address:#x}");
        let copied = page.forked && !page.shared;
        kernel.faults += usize::from(page.own.is_none() || copied);
        page.forked = false;
        if lost {
            return Ok(());
        }
        if let Some((file, number)) = &page.file
            && (page.shared || flaw == Some(Flaw::LeakyCopies))
        {
            file.borrow_mut().bytes.insert(number * PAGE, value);
        }
        page.own = (!page.shared).then_some(value);
        Ok(())
    }

    fn read(&mut self, address: usize) -> Result<u8, Error> {
        self.ask(Call::Touch, "read")?;
        let page = &self.pages[&address];
        assert_ne!(page.prot, Prot::None, "no right at {address:#x}");
        let of_file = || {
            let file = page.file.as_ref();
            file.map(|(file, page)| file.borrow().page(*page))
        };
        self.kernel.borrow_mut().faults += usize::from(page.own.is_none());
        Ok(page.own.or_else(of_file).unwrap_or(0))
    }

    fn start(&mut self, program: Program<'_, File>) -> Result<Child, Error> {
        self.ask(Call::Fork, "fork")?;
        match program {
            Program::Compiler { unit, output } => {
                self.kernel.borrow_mut().units.push(unit);
                let wrong = self.flaw() == Some(Flaw::WrongUnit);
                let inputs = self.inputs.clone();
                compile(
                    &mut self.child(false),
                    unit + u64::from(wrong),
                    &inputs,
                    output,
                )?;
            }
            Program::Mail(mail) => mail.run(&mut self.child(true))?,
        }
        if self.flaw() == Some(Flaw::SharedFork) {
            let own = self.pages.values_mut().filter(|page| page.own.is_some());
            own.for_each(|page| page.own = Some(0));
        }
        let crashed = self.flaw() == Some(Flaw::Crash);
        self.children.push(if crashed { 139 } else { 0 });
        Ok(Child::Process(0))
    }

    fn daemon(&self) -> Option<Daemon> {
        self.daemon
    }

    fn write_file(&mut self, file: &File, at: u64, bytes: &[u8]) -> Result<usize, Error> {
        self.ask(Call::Write, "write_file")?;
        let mut file = file.borrow_mut();
        let places = at as usize..at as usize + bytes.len();
        assert!(places.end <= file.len, "the file would grow");
        file.bytes.extend(places.zip(bytes.iter().copied()));
        Ok(bytes.len())
    }

    fn read_file(&mut self, file: &File, at: u64, bytes: &mut [u8]) -> Result<usize, Error> {
        self.ask(Call::Read, "read_file")?;
        let file = file.borrow();
        let places = at as usize..at as usize + bytes.len();
        assert!(places.end <= file.len, "behind the file's end");
        for (byte, place) in bytes.iter_mut().zip(places) {
            *byte = file.bytes.get(&place).copied().unwrap_or(0);
        }
        Ok(bytes.len())
    }

    fn compute(&mut self, nanoseconds: u64) {
        self.kernel.borrow_mut().computed += nanoseconds;
    }

    fn number(&self) -> usize {
        3
    }

    fn wait(&mut self, _: Child) -> Result<u8, Error> {
        self.ask(Call::Wait, "wait")?;
        Ok(self.children.pop().expect("a child"))
    }
}
