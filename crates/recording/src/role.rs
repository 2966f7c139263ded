//! Threads that do the same.

use crate::{Recording, What};

/// Threads of a recording that do the same: they have the same name, but for digits, in processes
/// of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The name of the processes.
    pub process: String,
    /// The name of the threads, without digits.
    pub name: String,
    /// Their numbers.
    pub threads: Vec<u32>,
    /// The number of their calls and faults.
    pub operations: u64,
}

impl Recording {
    /// The roles, the busiest first.
    pub fn roles(&self) -> Vec<Role> {
        let mut operations = vec![0; self.threads.len()];
        for event in &self.events {
            operations[event.thread as usize] += match event.what {
                What::Call { .. } => 1,
                What::Fault { pages, .. } => u64::from(pages),
                _ => 0,
            };
        }
        let mut roles: Vec<Role> = Vec::new();
        for (number, thread) in (0..).zip(&self.threads) {
            let process = &self.processes[thread.process as usize].name;
            let name = plain(&thread.name);
            let same = |role: &&mut Role| role.process == *process && role.name == name;
            let done = operations[number as usize];
            match roles.iter_mut().find(same) {
                Some(role) => {
                    role.threads.push(number);
                    role.operations += done;
                }
                None => roles.push(Role {
                    process: process.clone(),
                    name,
                    threads: vec![number],
                    operations: done,
                }),
            }
        }
        roles.sort_by_key(|role| std::cmp::Reverse(role.operations));
        roles
    }
}

/// A thread's name without its number.
fn plain(name: &str) -> String {
    let letters: String = name.chars().filter(|c| !c.is_ascii_digit()).collect();
    letters
        .trim_end_matches([' ', '-', '_', '#', ':', '.'])
        .into()
}
