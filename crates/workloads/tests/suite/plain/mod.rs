//! A system with only the required operations.

use workloads::{Backing, Error, Prot, System};

/// It has the operations that every system must have, and nothing else.
pub struct Plain;

impl System for Plain {
    type File = ();

    fn page_size(&self) -> usize {
        4096
    }

    fn map(&mut self, _: usize, _: Prot, _: Backing<'_, ()>) -> Result<usize, Error> {
        Ok(4096)
    }

    fn unmap(&mut self, _: usize, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn protect(&mut self, _: usize, _: usize, _: Prot) -> Result<(), Error> {
        Ok(())
    }

    fn discard(&mut self, _: usize, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn program_break(&mut self) -> Result<usize, Error> {
        Ok(4096)
    }

    fn set_program_break(&mut self, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn file(&mut self, _: usize) -> Result<(), Error> {
        Ok(())
    }

    fn write(&mut self, _: usize, _: u8) -> Result<(), Error> {
        Ok(())
    }

    fn read(&mut self, _: usize) -> Result<u8, Error> {
        Ok(0)
    }
}
