//! The files of the sequences.

use super::scarcity::Store;
use machine::Platform;
use oracle::step::FILES;
use std::sync::Arc;
use vm::object::{Object, ObjectId, ObjectRef};
use vm::{Best, Error, Vm};

pub type Memory<M> = ObjectRef<Best<M>>;

/// All files, and the objects of shared memory.
pub struct Files<M: Platform> {
    vm: Arc<Vm<Best<M>>>,
    stores: Vec<Store<M>>,
    objects: Vec<Memory<M>>,
}

impl<M: Platform> Files<M> {
    /// Empty files.
    pub fn new(vm: &Arc<Vm<Best<M>>>) -> Result<Self, Error> {
        let stores: Vec<_> = (0..FILES).map(|_| Store::default()).collect();
        let file = |store: &Store<M>| Object::file(vm, store.clone(), 0);
        let objects = stores.iter().map(file).collect::<Result<_, _>>()?;
        Ok(Files {
            vm: vm.clone(),
            stores,
            objects,
        })
    }

    /// The stores of the files.
    pub fn stores(&self) -> &[Store<M>] {
        &self.stores
    }

    /// Empties the files.
    pub fn clear(&self) -> Result<(), Error> {
        self.objects.iter().try_for_each(|file| file.set_size(0))
    }

    /// A file's object.
    pub fn file(&self, file: u8) -> &Memory<M> {
        &self.objects[usize::from(file)]
    }

    /// The number of the file that an object is, if it is one.
    pub fn named(&self, id: ObjectId) -> Option<u8> {
        let found = self.objects.iter().position(|file| file.id() == id);
        found.map(|file| file as u8)
    }

    /// Shared memory of this many bytes.
    pub fn shared(&self, bytes: u64) -> Result<Memory<M>, Error> {
        self.vm.uncharged_memory(bytes)
    }
}
