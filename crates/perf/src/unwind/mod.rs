//! Finds callers that frame pointers miss.
//!
//! The kernel follows frame pointers. It skips the caller of a function without a frame of its own,
//! such as leaves of programs and most of the C library, so two callers of one leaf look the same.
//! The unwind tables of programs tell for each instruction where its function returns to. They are
//! followed from the leaf, on the words of the stack that the kernel delivers, up to the first
//! function that has a frame.

mod table;

use crate::event::{Chain, Registers};
use crate::tasks::{Files, Image, Place};
use std::collections::HashMap;
use table::{Base, Rule, Table};

/// Callers looked up at most.
const MOST: usize = 64;

/// Tables by file, and the rules already looked up in them.
#[derive(Debug, Default)]
pub(crate) struct Unwinder {
    tables: HashMap<u32, Option<Table>>,
    rules: HashMap<Place, Option<Rule>>,
    words: HashMap<(u64, u64), Word>,
}

/// Words of memory remembered at most.
const REMEMBERED: usize = 1 << 16;

/// A word of a program's memory, such as a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Word {
    /// In a variable of a program or library: the same in each process.
    Variable {
        file: u32,
        /// The address by the file's symbols.
        address: u64,
    },
    /// Anywhere else.
    At(u64),
}

impl Word {
    /// Returns true if it lies in a variable.
    pub fn is_variable(self) -> bool {
        matches!(self, Word::Variable { .. })
    }

    /// The same word, if its file has the number that `file` gives.
    pub fn in_file(self, file: impl FnOnce(u32) -> u32) -> Word {
        match self {
            Word::Variable { file: old, address } => Word::Variable {
                file: file(old),
                address,
            },
            Word::At(_) => self,
        }
    }
}

/// The callers between the user's leaf and those that frame pointers find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Callers {
    /// The return addresses of the leaf and its callers.
    pub returns: Vec<u64>,
    /// True if frame pointers take over from there. They do not where the register holds something
    /// else.
    pub framed: bool,
}

impl Unwinder {
    pub fn callers(&mut self, image: &Image, files: &Files, leaf: u64, chain: &Chain) -> Callers {
        let Some(start) = chain.registers else {
            return Callers {
                framed: true,
                ..Callers::default()
            };
        };
        let mut returns = Vec::new();
        let mut at = Frame {
            code: leaf,
            ..Frame::from(start)
        };
        while returns.len() < MOST {
            // A call may be the last instruction of its function.
            let code = at.code - u64::from(!returns.is_empty());
            let rule = image.find(code).and_then(|place| self.rule(place, files));
            let Some(rule) = rule else { break };
            let is_known = rule.base == Base::Frame && at.frame == start.frame;
            let next = (!is_known).then(|| at.caller(rule, returns.is_empty(), &start, &chain.top));
            let Some(next) = next.flatten() else { break };
            returns.push(next.code);
            at = next;
        }
        Callers {
            framed: at.frame == start.frame,
            returns,
        }
    }

    /// The word at `address` in `image`.
    pub fn word(&mut self, image: &Image, files: &Files, address: u64) -> Word {
        let Unwinder { tables, words, .. } = self;
        if words.len() >= REMEMBERED {
            words.clear();
        }
        *words.entry((image.id, address)).or_insert_with(|| {
            let variable = image.regions().find_map(|(start, place)| {
                let table = table_of(tables, place.file, files)?;
                let moved = start.wrapping_sub(table.mapped(place.offset)?);
                let address = address.wrapping_sub(moved);
                let file = place.file;
                table
                    .holds(address)
                    .then_some(Word::Variable { file, address })
            });
            variable.unwrap_or(Word::At(address))
        })
    }

    fn rule(&mut self, place: Place, files: &Files) -> Option<Rule> {
        let Unwinder { tables, rules, .. } = self;
        *rules
            .entry(place)
            .or_insert_with(|| table_of(tables, place.file, files)?.rule(place.offset))
    }
}

fn table_of<'a>(
    tables: &'a mut HashMap<u32, Option<Table>>,
    file: u32,
    files: &Files,
) -> Option<&'a Table> {
    let table = tables.entry(file);
    let table = table.or_insert_with(|| Table::of(&files.names()[file as usize]));
    table.as_ref()
}

/// A function during unwinding.
#[derive(Clone, Copy)]
struct Frame {
    code: u64,
    stack: u64,
    frame: u64,
}

impl From<Registers> for Frame {
    fn from(registers: Registers) -> Self {
        Frame {
            code: 0,
            stack: registers.stack,
            frame: registers.frame,
        }
    }
}

impl Frame {
    /// Its caller, if the words on `top` of the stack reach that far.
    fn caller(self, rule: Rule, is_leaf: bool, start: &Registers, top: &[u64]) -> Option<Frame> {
        let word = |at: u64| {
            let index = at.checked_sub(start.stack)? / 8;
            top.get(usize::try_from(index).ok()?).copied()
        };
        let base = match rule.base {
            Base::Stack => self.stack,
            Base::Frame => self.frame,
        };
        let stack = base.checked_add_signed(rule.distance)?;
        let saved = |distance| word(stack.checked_add_signed(distance)?);
        let code = match rule.return_at {
            Some(distance) => saved(distance)?,
            None => start.link.filter(|_| is_leaf)?,
        };
        let frame = match rule.frame_at {
            Some(distance) => saved(distance)?,
            None => self.frame,
        };
        // Stacks grow down, so a caller's stack pointer is higher.
        let further = stack > self.stack || is_leaf;
        (further && code != 0).then_some(Frame { code, stack, frame })
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
