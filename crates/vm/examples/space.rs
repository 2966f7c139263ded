//! The VM in a few lines: an address space on a machine of threads, a fork, and a copy on write.

use hosted::Hosted;
use machine::VaRange;
use std::sync::Arc;
use vm::{Best, Error, Prot, Space, Vm};

const MIB: usize = 1 << 20;

fn main() -> Result<(), Error> {
    let machine = Hosted::with_memory(2, 64 * MIB).expect("memory of this computer");
    machine.attach(0); // this thread is CPU 0 from now on
    let vm: Arc<Vm<Best<Hosted>>> = Vm::new(machine)?;

    let parent = Space::new(&vm)?;
    parent.activate();
    let at = parent.map(8 * MIB, Prot::READ_WRITE)?;
    parent.store(at, 1)?; // translates, faults, and stores

    let child = parent.fork()?;
    parent.store(at, 2)?; // copies the page: the child keeps the old one
    child.activate();
    println!("the child reads {}", child.load(at)?);

    child.unmap(VaRange::sized(at, 8 * MIB))?;
    println!("after munmap: {:?}", child.load(at));
    Ok(())
}
