//! New numbers of what stays.

use crate::renumber::Renumber;

/// The new number of each thread, process and file that stays, by its old one.
pub struct Numbers {
    pub threads: Vec<u32>,
    pub processes: Vec<u32>,
    pub files: Vec<u32>,
}

impl Numbers {
    /// Of those that are true.
    pub fn new(threads: &[bool], processes: &[bool], files: &[bool]) -> Self {
        Numbers {
            threads: without_gaps(threads),
            processes: without_gaps(processes),
            files: without_gaps(files),
        }
    }
}

impl Renumber for Numbers {
    fn thread(&self, number: u32) -> u32 {
        self.threads[number as usize]
    }

    fn process(&self, number: u32) -> u32 {
        self.processes[number as usize]
    }

    fn file(&self, number: u32) -> u32 {
        self.files[number as usize]
    }

    fn mapping(&self, number: u32) -> u32 {
        number
    }
}

/// The number of those before that stay.
fn without_gaps(stays: &[bool]) -> Vec<u32> {
    let counted = stays.iter().scan(0, |next, stays| {
        let number = *next;
        *next += u32::from(*stays);
        Some(number)
    });
    counted.collect()
}
