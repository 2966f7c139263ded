//! Access to a space's memory: by tasks, and by the kernel in a task's place (`copyin`, `copyout`).

use super::{HIGHEST, Space};
use crate::error::Error;
use crate::pmap::Entry;
use crate::system::System;
use machine::{Access, Frame, Memory, Mmu, PAGE_SIZE, PageFault, VaRange};

impl<S: System> Space<S> {
    /// Reads the aligned word at `address` for a task on this CPU, which runs in this space.
    ///
    /// # Errors
    /// Those of [`Space::fault`].
    ///
    /// # Panics
    /// If the CPU does not run in this space ([`Space::activate`]), or is none of the VM's machine.
    #[inline]
    pub fn load(&self, address: usize) -> Result<u64, Error> {
        // SAFETY: the CPU translates by this space's tables, which stay while the space does.
        self.access(|| unsafe { self.vm.machine().load(address) })
    }

    /// Writes the aligned word at `address` for a task on this CPU, which runs in this space.
    ///
    /// # Errors
    /// Those of [`Space::fault`].
    ///
    /// # Panics
    /// As [`Space::load`].
    #[inline]
    pub fn store(&self, address: usize, value: u64) -> Result<(), Error> {
        // SAFETY: as in `load`.
        self.access(|| unsafe { self.vm.machine().store(address, value) })
    }

    /// Fetches the aligned word at `address` as an instruction for a task on this CPU, which runs
    /// in this space.
    ///
    /// # Errors
    /// Those of [`Space::fault`].
    ///
    /// # Panics
    /// As [`Space::load`].
    #[inline]
    pub fn fetch(&self, address: usize) -> Result<u64, Error> {
        // SAFETY: as in `load`.
        self.access(|| unsafe { self.vm.machine().fetch(address) })
    }

    /// Tries an access, and handles its faults, until it succeeds or a fault is refused.
    #[inline]
    fn access<R>(&self, access: impl Fn() -> Result<R, PageFault>) -> Result<R, Error> {
        assert!(
            self.pmap.is_active(),
            "a task accesses a space in which its CPU does not run"
        );
        loop {
            match access() {
                Ok(result) => return Ok(result),
                Err(fault) => self.fault(fault)?,
            }
        }
    }
}

impl<S: System> Space<S> {
    /// Fills `bytes` with the content that a task would read from `address` on; called on any CPU,
    /// whatever space it runs in. Each aligned word is read atomically; the whole is not.
    ///
    /// # Errors
    /// The error of the task's access, such as [`Error::Segv`], at the first address that fails;
    /// how much of `bytes` is filled then is undefined.
    pub fn copy_in(&self, address: usize, bytes: &mut [u8]) -> Result<(), Error> {
        let mut done = 0;
        while done < bytes.len() {
            let at = address.checked_add(done).unwrap_or(HIGHEST);
            let count = (PAGE_SIZE - at % PAGE_SIZE).min(bytes.len() - done);
            let part = &mut bytes[done..done + count];
            self.with_page(at, Access::Read, |machine, frame| {
                // SAFETY: the page stays mapped during the call.
                unsafe { machine.read_bytes(frame, at % PAGE_SIZE, part) };
            })?;
            done += count;
        }
        Ok(())
    }

    /// Writes `bytes` as a task would from `address` on; called on any CPU, whatever space it runs
    /// in. Each aligned word is written atomically; the whole is not. Bytes written before an error
    /// stay.
    pub fn copy_out(&self, address: usize, bytes: &[u8]) -> Result<(), Error> {
        let mut done = 0;
        while done < bytes.len() {
            let at = address.checked_add(done).unwrap_or(HIGHEST);
            let count = (PAGE_SIZE - at % PAGE_SIZE).min(bytes.len() - done);
            let part = &bytes[done..done + count];
            self.with_page(at, Access::Write, |machine, frame| {
                // SAFETY: the page stays mapped during the call.
                unsafe { machine.write_bytes(frame, at % PAGE_SIZE, part) };
            })?;
            done += count;
        }
        Ok(())
    }

    /// Calls `act` with the frame of the page at `address`, which stays mapped for `access` during
    /// the call.
    fn with_page(
        &self,
        address: usize,
        access: Access,
        mut act: impl FnMut(&S::Machine, Frame),
    ) -> Result<(), Error> {
        let fault = PageFault {
            address,
            access,
            present: false,
        };
        loop {
            if self.try_with_page(address, access, &mut act)? {
                return Ok(());
            }
            self.fault(fault)?;
        }
    }

    fn try_with_page(
        &self,
        address: usize,
        access: Access,
        act: &mut impl FnMut(&S::Machine, Frame),
    ) -> Result<bool, Error> {
        if address >= HIGHEST {
            return Ok(false);
        }
        let page = VaRange::page(address);
        let _pmap = self.pmap.lock_tables();
        let place = self.pmap.tree.find(page.start);
        if place.is_hole(page) {
            return Ok(false);
        }
        let mut locked = self.pmap.tree.at(place, page).lock()?;
        let Some(part) = locked.parts().next() else {
            return Ok(false);
        };
        let reads = part
            .first()
            .is_some_and(|at| at.flags.prot().is_accessible());
        let _steady = self.pmap.steady(&part);
        match self.pmap.entry_at(&part) {
            Entry::Page {
                frame, writable, ..
            } if writable || access == Access::Read && reads => {
                self.pmap.used_by_kernel(&part, access);
                act(self.vm.machine(), frame);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}
