//! The files of the sequences.

use hosted::Hosted;
use oracle::step::FILES;
use std::sync::Arc;
use vm::object::{Object, ObjectId, ObjectRef};
use vm::pager::MemoryPager;
use vm::{Best, Error, Vm};

/// An object.
pub type Memory = ObjectRef<Hosted, Best>;

/// All files, and what shared memory is made of.
pub struct Files {
    vm: Arc<Vm<Hosted, Best>>,
    objects: Vec<Memory>,
}

impl Files {
    /// Empty files.
    pub fn new(vm: &Arc<Vm<Hosted, Best>>) -> Result<Self, Error> {
        let file = |_| Object::file(vm, Arc::new(MemoryPager::new()), 0);
        let objects = (0..FILES).map(file).collect::<Result<_, _>>()?;
        let vm = vm.clone();
        Ok(Files { vm, objects })
    }

    /// Makes them empty again.
    pub fn clear(&self) -> Result<(), Error> {
        self.objects.iter().try_for_each(|file| file.set_size(0))
    }

    /// A file's object.
    pub fn file(&self, file: u8) -> &Memory {
        &self.objects[usize::from(file)]
    }

    /// Which file an object is, if it is one.
    pub fn named(&self, id: ObjectId) -> Option<u8> {
        let found = self.objects.iter().position(|file| file.id() == id);
        found.map(|file| file as u8)
    }

    /// Shared memory of so many bytes.
    pub fn shared(&self, bytes: u64) -> Result<Memory, Error> {
        let swap = self.vm.swap_space().cloned();
        Object::anonymous(&self.vm, swap.map(|swap| swap as _), bytes)
    }
}
