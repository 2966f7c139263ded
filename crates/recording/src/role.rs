//! Threads that do the same.

use crate::{Recording, What};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Threads of a recording that do the same, in processes of the same name: their first threads, or
/// others that have the same name, but for digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The name of the processes.
    pub process: String,
    /// The name of the threads, without digits; `main` for first threads.
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
        self.roles_of(&operations)
    }

    /// The roles of threads that do this many operations.
    pub(crate) fn roles_of(&self, operations: &[u64]) -> Vec<Role> {
        let mut roles: BTreeMap<(&str, String), Role> = BTreeMap::new();
        for (number, thread) in (0..).zip(&self.threads) {
            let process = &self.processes[thread.process as usize];
            let name = match thread.tid == process.pid {
                true => MAIN.to_owned(),
                false => plain(&thread.name),
            };
            let role = roles.entry((&process.name, name.clone())).or_insert(Role {
                process: process.name.clone(),
                name,
                threads: Vec::new(),
                operations: 0,
            });
            role.threads.push(number);
            let done = operations.get(number as usize).copied().unwrap_or(0);
            role.operations = role.operations.saturating_add(done);
        }
        let mut roles: Vec<Role> = roles.into_values().collect();
        roles.sort_by_key(|role| Reverse(role.operations));
        roles
    }
}

/// The role of the first threads of processes.
const MAIN: &str = "main";

/// A thread's name without its number.
fn plain(name: &str) -> String {
    let letters: String = name.chars().filter(|c| !c.is_ascii_digit()).collect();
    letters
        .trim_end_matches([' ', '-', '_', '#', ':', '.'])
        .into()
}
