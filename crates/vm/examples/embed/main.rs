//! The VM embedded: on a machine of its own (`process.rs`, less than 250 lines of code) locks and
//! epochs work, and a space maps, faults, forks, unmaps with a shootdown, pages a file in, and has
//! more memory than there is.
//!
//! `docs/embedding.md` goes through it; `tests/embed.rs` runs it, and the conformance suite on its
//! machine.

pub mod process;

use machine::{
    Execute, Frame, Job, Memory, PAGE_SIZE, Pager, PagerError, Topology, Truncate, VaRange,
};
use process::Process;
use std::collections::BTreeMap;
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use sync::{epoch::Domain, obm::Obm};
use vm::{Best, Error, Options, Prot, Request, Space, Vm, object::Object, swap::SwapSpace};

/// Frames of the machine: 8 MiB.
const FRAMES: usize = 2048;

/// Goes through the steps.
pub fn main() {
    let machine = Process::new(2, FRAMES);
    locks_and_epochs(&machine);
    let both = Arc::new(Both {
        machine: machine.clone(),
        barrier: Barrier::new(2),
        shared: OnceLock::new(),
    });
    let other = both.clone();
    machine.execute(vec![
        Box::new(move || first(&both).expect("memory")),
        Box::new(move || second(&other)),
    ]);
    println!("locks, epochs, faults, a fork, a shootdown, a file, and swapping work");
}

/// Both CPUs count under a lock of one byte, and wait until no section of the other's is open.
fn locks_and_epochs(machine: &Process) {
    type Count = sync::Mutex<Process, Obm<Process>, u64>;
    let count = Arc::new(Count::new(0));
    let domain = Arc::new(Domain::<Process>::new(machine.cpus()));
    let job = || -> Job {
        let (count, domain) = (count.clone(), domain.clone());
        Box::new(move || {
            for _ in 0..1_000 {
                *count.lock() += 1;
                drop(domain.enter()); // what a reader finds in a section stays until its end
            }
            domain.wait(); // all sections that were open have ended
        })
    };
    machine.execute(vec![job(), job()]);
    assert_eq!(*count.lock(), 2_000);
}

/// What the two CPUs share.
struct Both {
    machine: Process,
    barrier: Barrier,
    /// A space, and an address in it.
    shared: OnceLock<(Arc<Space<Best<Process>>>, usize)>,
}

/// CPU 0.
fn first(both: &Both) -> Result<(), Error> {
    let machine = both.machine.clone();
    let slots = SwapSpace::new(machine.cpus(), Box::new(File::default()), 2 * FRAMES as u32)?;
    let options = Options {
        swap_space: Some(slots),
        ..Options::default()
    };
    let vm: Arc<Vm<Best<Process>>> = Vm::with_options(machine, options)?;

    let space = Arc::new(Space::new(&vm)?);
    space.activate();
    let at = space.map(1 << 20, Prot::READ_WRITE)?;
    space.store(at, 1)?; // faults: a page of zeroes, then the store
    let child = space.fork()?;
    space.store(at, 2)?; // faults: a copy, as the child keeps the old page
    child.activate();
    assert_eq!(child.load(at), Ok(1));
    space.activate();
    drop(child);

    assert!(both.shared.set((space.clone(), at)).is_ok());
    both.barrier.wait();
    both.barrier.wait(); // the other CPU has used the page
    space.unmap(VaRange::sized(at, PAGE_SIZE))?; // returns when no CPU can use it any more
    both.barrier.wait();
    both.barrier.wait(); // the other CPU has found it gone; its place may be taken

    let file = Arc::new(File::default());
    lock(&file.0).insert(0, Box::new([b'f'; PAGE_SIZE]));
    let object = Object::file(&vm, file.clone(), PAGE_SIZE as u64)?;
    let request = Request::object(&object, 0, PAGE_SIZE, Prot::READ_WRITE)?.shared();
    let mapped = space.map_as(&request)?;
    assert_eq!(space.load(mapped), Ok(u64::from_ne_bytes([b'f'; 8]))); // faults: the page is read
    space.store(mapped, 0)?;
    space.sync(VaRange::sized(mapped, PAGE_SIZE))?; // written back
    assert_eq!(lock(&file.0)[&0][..9], *b"\0\0\0\0\0\0\0\0f");

    let large = space.map(FRAMES * PAGE_SIZE, Prot::READ_WRITE)?; // more than is left
    let pages = || (large..).step_by(PAGE_SIZE).take(FRAMES);
    pages().try_for_each(|page| space.store(page, page as u64))?;
    pages().for_each(|page| assert_eq!(space.load(page), Ok(page as u64)));
    Ok(())
}

/// CPU 1, in the same space.
fn second(both: &Both) {
    both.barrier.wait();
    let (space, at) = both.shared.get().expect("a space");
    space.activate();
    assert_eq!(space.load(*at), Ok(2)); // the translation is in this CPU's TLB now
    both.barrier.wait();
    both.barrier.wait();
    assert!(matches!(space.load(*at), Err(Error::Segv(_))));
    both.barrier.wait();
}

type Pages = BTreeMap<u64, Box<[u8; PAGE_SIZE]>>;

/// A file, or a disk: its pages that were ever written.
#[derive(Default)]
pub struct File(Mutex<Pages>);

fn lock(pages: &Mutex<Pages>) -> std::sync::MutexGuard<'_, Pages> {
    pages.lock().expect("no call panics")
}

impl Pager<Process> for File {
    unsafe fn read(
        &self,
        machine: &Process,
        first: u64,
        frames: &[Frame],
    ) -> Result<(), PagerError> {
        let pages = lock(&self.0);
        for (page, &frame) in (first..).zip(frames) {
            match pages.get(&page) {
                // SAFETY: so says the caller.
                Some(bytes) => unsafe { machine.write_bytes(frame, 0, &bytes[..]) },
                // SAFETY: so says the caller.
                None => unsafe { machine.zero(frame) },
            }
        }
        Ok(())
    }

    unsafe fn write(
        &self,
        machine: &Process,
        first: u64,
        frames: &[Frame],
        bytes: usize,
    ) -> Result<(), PagerError> {
        let mut pages = lock(&self.0);
        for (index, &frame) in frames.iter().enumerate() {
            let count = bytes.saturating_sub(index * PAGE_SIZE).min(PAGE_SIZE);
            let page = pages.entry(first + index as u64);
            let page = page.or_insert_with(|| Box::new([0; PAGE_SIZE]));
            // SAFETY: so says the caller.
            unsafe { machine.read_bytes(frame, 0, &mut page[..count]) };
        }
        Ok(())
    }
}

impl Truncate<Process> for File {
    fn truncate(&self, _machine: &Process, bytes: u64) -> Result<(), PagerError> {
        let mut pages = lock(&self.0);
        let last = bytes / PAGE_SIZE as u64;
        pages.retain(|&page, _| page <= last);
        if let Some(page) = pages.get_mut(&last) {
            page[bytes as usize % PAGE_SIZE..].fill(0);
        }
        Ok(())
    }
}
