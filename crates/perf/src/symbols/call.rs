//! Whether an address is one that a call returns to.

use crate::account::{Frame, Stack};
use crate::tasks::Place;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes of the longest call, prefixes aside.
const LONGEST: usize = 7;

/// Those places of `stacks` that are perhaps callers and do end a call.
pub(crate) fn calls(stacks: &[Stack], files: &[String]) -> HashSet<Place> {
    let perhaps = |frame: &Frame| match frame {
        Frame::Perhaps(place) => Some(*place),
        _ => None,
    };
    let frames = stacks.iter().flat_map(|stack| &stack.frames);
    let mut places: HashSet<Place> = frames.filter_map(perhaps).collect();
    let mut opened: HashMap<u32, Option<File>> = HashMap::new();
    places.retain(|place| {
        let open = || File::open(&files[place.file as usize]).ok();
        let file = opened.entry(place.file).or_insert_with(open);
        // The place is the last byte of what might be the call.
        let code = file
            .as_ref()
            .and_then(|file| before(file, place.offset + 1));
        code.is_some_and(|code| ends_in_call(&code))
    });
    places
}

/// The bytes that end at `offset`.
fn before(file: &File, offset: u64) -> Option<[u8; LONGEST]> {
    let mut code = [0; LONGEST];
    let start = offset.checked_sub(LONGEST as u64)?;
    file.read_exact_at(&mut code, start).ok()?;
    Some(code)
}

/// Whether x86-64 code may end in a call: to a distance of four bytes, or through a
/// register or memory.
fn ends_in_call(code: &[u8; LONGEST]) -> bool {
    let near = code[LONGEST - 5] == 0xe8;
    near || (0..LONGEST - 1).any(|start| is_indirect_call(&code[start..]))
}

/// Whether `code` begins like `call *…` and is as long as its second byte says.
fn is_indirect_call(code: &[u8]) -> bool {
    let &[0xff, second, ..] = code else {
        return false;
    };
    let (mode, operation, register) = (second >> 6, second >> 3 & 7, second & 7);
    let length = match (mode, register) {
        (3, _) => 2,
        (0, 5) => 6,
        // Register 4 stands for a third byte that says which registers are added.
        (0, register) => 2 + usize::from(register == 4),
        (1, register) => 3 + usize::from(register == 4),
        (_, register) => 6 + usize::from(register == 4),
    };
    operation == 2 && code.len() == length
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of `code`, after instructions that do nothing.
    fn end(code: &[u8]) -> [u8; LONGEST] {
        let mut all = [0x90; 2 * LONGEST];
        all[2 * LONGEST - code.len()..].copy_from_slice(code);
        let mut end = [0; LONGEST];
        end.copy_from_slice(&all[LONGEST..]);
        end
    }

    #[test]
    fn calls_are_told_from_the_rest() {
        let calls: [&[u8]; 6] = [
            &[0xe8, 1, 2, 3, 4],                   // call distance
            &[0xff, 0xd0],                         // call *%rax
            &[0x41, 0xff, 0xd7],                   // call *%r15
            &[0xff, 0x15, 1, 2, 3, 4],             // call *distance(%rip)
            &[0xff, 0x50, 0x18],                   // call *0x18(%rax)
            &[0x41, 0xff, 0x94, 0x24, 1, 2, 3, 4], // call *distance(%r12)
        ];
        let others: [&[u8]; 4] = [
            &[0x0f, 0x05],       // syscall
            &[0xff, 0xe0],       // jmp *%rax
            &[0x48, 0x89, 0xe5], // mov %rsp, %rbp
            &[],
        ];
        assert!(calls.iter().all(|code| ends_in_call(&end(code))));
        assert!(!others.iter().any(|code| ends_in_call(&end(code))));
    }
}
