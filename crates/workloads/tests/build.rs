//! A build does the work of compilers, notices what is wrong with it, and leaves nothing behind.

mod plain;

use plain::Plain;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use workloads::{
    Backing, Call, Child, Counter, Error, Feature, Files, Needs, Prot, System, Workload, compile,
};

const PAGE: usize = 4096;
const ENOMEM: i32 = 12;
const HEAP: usize = 1 << 32;

/// The byte at the beginning of each page of a file.
type Content = Rc<RefCell<Vec<u8>>>;

/// What one page of memory is.
#[derive(Clone)]
struct Mapped {
    prot: Prot,
    /// Where it is in a file.
    file: Option<(Content, usize)>,
    shared: bool,
    /// What it holds, if that is its own.
    own: Option<u8>,
}

/// What a system does wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// Private copies go to the file.
    LeakyCopies,
    /// Memory is lost on the way: this many writes are done, and the next is not.
    LostWrite(usize),
    /// A compiler compiles the unit before.
    WrongUnit,
    /// A compiler ends badly.
    Crash,
    /// A child's memory is its parent's.
    SharedFork,
}

/// What all processes have in common.
#[derive(Default)]
struct Kernel {
    /// How often each call was made.
    calls: BTreeMap<&'static str, usize>,
    /// All of them, and accesses.
    count: usize,
    writes: usize,
    faults: usize,
    fail_at: Option<usize>,
    flaw: Option<Flaw>,
    units: Vec<u64>,
    computed: u64,
}

/// A process whose memory is real, by its pages.
struct Memory {
    kernel: Rc<RefCell<Kernel>>,
    inputs: Rc<Files<Content>>,
    pages: BTreeMap<usize, Mapped>,
    top: usize,
    heap_end: usize,
    children: Vec<u8>,
}

impl Memory {
    fn new(fail_at: Option<usize>, flaw: Option<Flaw>) -> Self {
        let inputs = Files::try_new(|input| {
            let pages = 0..input.size() / PAGE;
            let bytes = pages.map(|page| input.byte(page)).collect();
            Ok::<_, ()>(Rc::new(RefCell::new(bytes)))
        });
        let kernel = Kernel {
            fail_at,
            flaw,
            ..Kernel::default()
        };
        Memory::process(
            Rc::new(RefCell::new(kernel)),
            Rc::new(inputs.expect("no file fails")),
        )
    }

    fn process(kernel: Rc<RefCell<Kernel>>, inputs: Rc<Files<Content>>) -> Self {
        Memory {
            kernel,
            inputs,
            pages: BTreeMap::new(),
            top: PAGE,
            heap_end: HEAP,
            children: Vec::new(),
        }
    }

    fn ask(&self, call: Call, name: &'static str) -> Result<(), Error> {
        let mut kernel = self.kernel.borrow_mut();
        *kernel.calls.entry(name).or_default() += 1;
        kernel.count += 1;
        match kernel.fail_at == Some(kernel.count - 1) {
            true => Err(Error::Failed(call, ENOMEM)),
            false => Ok(()),
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
    type File = Content;

    fn page_size(&self) -> usize {
        PAGE
    }

    fn map(
        &mut self,
        len: usize,
        prot: Prot,
        backing: Backing<'_, Content>,
    ) -> Result<usize, Error> {
        self.ask(Call::Map, "map")?;
        let start = self.top;
        self.top += len + PAGE;
        for page in 0..len / PAGE {
            let file = match backing {
                Backing::Anonymous => None,
                Backing::PrivateFile(file) | Backing::SharedFile(file) => {
                    assert!(page < file.borrow().len(), "behind the file's end");
                    Some((file.clone(), page))
                }
            };
            let mapped = Mapped {
                prot,
                file,
                shared: matches!(backing, Backing::SharedFile(_)),
                own: None,
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
            };
            self.pages.insert(page, mapped);
        }
        self.heap_end = to;
        Ok(())
    }

    fn file(&mut self, len: usize) -> Result<Content, Error> {
        self.ask(Call::File, "file")?;
        Ok(Rc::new(RefCell::new(vec![0; len / PAGE])))
    }

    fn write(&mut self, address: usize, value: u8) -> Result<(), Error> {
        self.ask(Call::Touch, "write")?;
        let flaw = self.flaw();
        let mut kernel = self.kernel.borrow_mut();
        kernel.writes += 1;
        let lost = flaw == Some(Flaw::LostWrite(kernel.writes - 1));
        let page = self.pages.get_mut(&address).expect("mapped");
        assert_eq!(page.prot, Prot::ReadWrite, "no right at {address:#x}");
        kernel.faults += usize::from(page.own.is_none());
        if lost {
            return Ok(());
        }
        if let Some((file, number)) = &page.file
            && (page.shared || flaw == Some(Flaw::LeakyCopies))
        {
            file.borrow_mut()[*number] = value;
        }
        page.own = (!page.shared).then_some(value);
        Ok(())
    }

    fn read(&mut self, address: usize) -> Result<u8, Error> {
        self.ask(Call::Touch, "read")?;
        let page = &self.pages[&address];
        assert_ne!(page.prot, Prot::None, "no right at {address:#x}");
        let of_file = || page.file.as_ref().map(|(file, page)| file.borrow()[*page]);
        self.kernel.borrow_mut().faults += usize::from(page.own.is_none());
        Ok(page.own.or_else(of_file).unwrap_or(0))
    }

    fn start_compiler(&mut self, unit: u64, output: &Content) -> Result<Child, Error> {
        self.ask(Call::Fork, "fork")?;
        self.kernel.borrow_mut().units.push(unit);
        let (unit, code) = match self.flaw() {
            Some(Flaw::WrongUnit) => (unit + 1, 0),
            Some(Flaw::Crash) => (unit, 139),
            _ => (unit, 0),
        };
        let mut compiler = Memory::process(self.kernel.clone(), self.inputs.clone());
        compile(&mut compiler, unit, &self.inputs, output)?;
        if self.flaw() == Some(Flaw::SharedFork) {
            let page = self.pages.values_mut().next().expect("make's memory");
            page.own = Some(0);
        }
        self.children.push(code);
        Ok(Child::Process(0))
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

fn build() -> &'static Workload {
    workloads::find("build").expect("a known workload")
}

/// How `jobs` jobs end, and what they have done.
fn run(jobs: u64, fail_at: Option<usize>, flaw: Option<Flaw>) -> (Result<(), Error>, Memory) {
    let mut make = Memory::new(fail_at, flaw);
    let tick = Counter::with_limit(jobs);
    let outcome = build().run(&mut make, &tick);
    if outcome.is_ok() {
        assert_eq!(tick.get(), jobs);
    }
    (outcome, make)
}

#[test]
fn a_job_is_a_twentieth_of_a_compilers() {
    const JOBS: usize = 10;
    let (outcome, make) = run(JOBS as u64, None, None);
    assert_eq!(outcome, Ok(()));
    assert!(make.pages.is_empty(), "make has left memory");
    let kernel = make.kernel.borrow();
    let calls = |name: &str| kernel.calls[name];
    assert_eq!(calls("fork"), JOBS);
    assert_eq!(calls("wait"), JOBS);
    assert_eq!(calls("file"), JOBS);
    // Program, stack, libraries, sources, arenas, output; and make's look at the output.
    assert_eq!(calls("map"), 1 + JOBS * (2 + 1 + 2 * 8 + 8 + 8 + 1 + 1));
    assert_eq!(calls("unmap"), 1 + JOBS * (8 + 6 + 1 + 1));
    assert_eq!(calls("brk"), JOBS * 16);
    assert_eq!(calls("protect"), JOBS * 8);
    let faults = kernel.faults / JOBS;
    assert!((700..900).contains(&faults), "{faults} faults a job");
    let computed = kernel.computed / JOBS as u64;
    assert!((7_000_000..9_000_000).contains(&computed), "{computed} ns");
}

#[test]
fn no_unit_is_compiled_twice_and_no_two_take_equally_long() {
    let (_, make) = run(5, None, None);
    let kernel = make.kernel.borrow();
    let first = 3 << 32; // it is task 3
    assert_eq!(kernel.units, (first..first + 5).collect::<Vec<u64>>());
    let computed = |jobs| run(jobs, None, None).1.kernel.borrow().computed;
    assert_ne!(computed(1), computed(2) - computed(1));
}

#[test]
fn needs_say_what_is_called() {
    let needs = Needs {
        files: true,
        brk: true,
        protect: true,
        features: &[Feature::Compiler],
        memory: build().needs.memory,
        ..Needs::NOTHING
    };
    assert_eq!(build().needs, needs);
    let (_, make) = run(1, None, None);
    let touched = make.kernel.borrow().faults * PAGE;
    assert!(needs.memory >= touched && needs.memory <= 4 * touched);
}

#[test]
fn the_first_failure_ends_the_build() {
    let (outcome, make) = run(1, None, None);
    assert_eq!(outcome, Ok(()));
    let count = make.kernel.borrow().count;
    for number in 0..count {
        let (outcome, make) = run(1, Some(number), None);
        assert!(
            matches!(outcome, Err(Error::Failed(_, ENOMEM))),
            "call {number}: {outcome:?}"
        );
        // Unmapping may have been what failed.
        let kernel = make.kernel.borrow();
        let excused = matches!(outcome, Err(Error::Failed(Call::Unmap, _)));
        assert!(excused || make.pages.is_empty(), "call {number}");
        assert!(kernel.units.len() <= 1);
    }
}

#[test]
fn work_that_is_wrong_is_noticed() {
    let wrong = |flaw| run(2, None, Some(flaw)).0.expect_err("a flaw");
    assert!(matches!(wrong(Flaw::LeakyCopies), Error::Wrong { .. }));
    assert!(matches!(wrong(Flaw::WrongUnit), Error::Wrong { .. }));
    assert!(matches!(wrong(Flaw::SharedFork), Error::Wrong { .. }));
    let crash = Error::Answer {
        call: Call::Exec,
        found: 139,
        expected: 0,
    };
    assert_eq!(wrong(Flaw::Crash), crash);
}

#[test]
fn writes_that_are_lost_are_noticed() {
    let (_, make) = run(1, None, None);
    let writes = make.kernel.borrow().writes;
    let noticed = |number| run(1, None, Some(Flaw::LostWrite(number))).0.is_err();
    let noticed = (0..writes).filter(|&number| noticed(number)).count();
    // All but those to pages that nobody reads again: the rest of make's own, private copies and the stack.
    let unread = (64 - 16) + 16 + 24 + 8 * 4 + 4;
    assert_eq!(writes - noticed, unread);
}

#[test]
fn a_system_without_a_compiler_says_so() {
    let outcome = build().run(&mut Plain, &Counter::new());
    assert_eq!(outcome, Err(Error::Unsupported(Call::Exec)));
}
