//! What calls do to the mappings of an address space.

use super::calls::Kind;
use super::existing::Existing;
use super::program::Program;
use super::raw::Mapped;
use super::regions::{Piece, Regions};
use super::task::Pending;
use recording::{Advice, Call, File, Place, Prot, Sharing, What};
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes that a stack may grow to, as programs start with.
const STACK: u64 = 8 << 20;

/// An address space.
#[derive(Clone, Debug, Default)]
pub(super) struct Space {
    pub regions: Regions,
    heap: Option<Heap>,
    /// Processes that have it.
    pub users: usize,
    /// Threads whose runs of faults may go on.
    pub touched: BTreeSet<u32>,
}

/// The heap, which `brk` resizes.
#[derive(Clone, Copy, Debug)]
struct Heap {
    /// Its mapping, once it has one.
    mapping: Option<u32>,
    start: u64,
    /// The end of its last page.
    top: u64,
}

impl Heap {
    /// One that is empty.
    fn at(start: u64) -> Heap {
        Heap {
            mapping: None,
            start,
            top: start,
        }
    }
}

impl Space {
    /// The memory of a forked process.
    pub fn copy(&self) -> Space {
        Space {
            users: 0,
            touched: BTreeSet::new(),
            ..self.clone()
        }
    }
}

impl Program {
    /// What is mapped in the range of a call that begins. What it unmaps is gone from now on: when
    /// the call returns, another thread may have got the addresses.
    pub(super) fn affected(&mut self, tid: u32, kind: Kind, arguments: [u64; 6]) -> Vec<Piece> {
        let [start, length, ..] = arguments;
        let length = match kind {
            Kind::Unmap
            | Kind::Protect
            | Kind::Advise
            | Kind::Lock
            | Kind::Unlock
            | Kind::Sync
            | Kind::InCore
            | Kind::Remap => length.next_multiple_of(self.page),
            Kind::Detach => 1,
            Kind::Map | Kind::Break | Kind::Attach | Kind::Other | Kind::Task => return Vec::new(),
        };
        let space = self.space_of(tid);
        let regions = &mut self.spaces[space].regions;
        let mut pieces = regions.pieces(&(start..start.saturating_add(length)));
        if let (Kind::Detach, Some(first)) = (kind, pieces.first()) {
            pieces = regions.of(first.place.mapping).copied().collect();
        }
        if matches!(kind, Kind::Unmap | Kind::Detach) {
            for piece in &pieces {
                regions.remove(piece.start..piece.end);
            }
        }
        pieces
    }

    /// What a call that returns has done; none if other events tell.
    pub(super) fn done(&mut self, tid: u32, mut call: Pending, result: i64) -> Option<What> {
        /// Results from here on are errors.
        const ERRORS: i64 = -4095;
        let error = match result {
            ERRORS..0 => -result as u16,
            _ => 0,
        };
        let space = self.space_of(tid);
        let made = match call.kind {
            Kind::Task => return None,
            Kind::Other => Some(Call::Other {
                number: call.number as u32,
            }),
            Kind::Map => Some(self.map(space, &mut call, result, error)),
            Kind::Attach => Some(self.attach(space, &call, result, error)),
            Kind::Break => self.resize_heap(space, result as u64),
            Kind::Remap => self.remap(space, &call, result, error),
            _ => {
                if error != 0 && matches!(call.kind, Kind::Unmap | Kind::Detach) {
                    let regions = &mut self.spaces[space].regions;
                    call.pieces.iter().for_each(|&piece| regions.set(piece));
                }
                on_range(&call, self.page)
            }
        };
        let Some(made) = made else {
            self.recording.lost.unknown += 1;
            return Some(What::Unknown);
        };
        let rest = call.pieces.iter().skip(1);
        Some(What::Call {
            call: made,
            error,
            parts: rest.map(|piece| (piece.place, piece.length())).collect(),
        })
    }

    /// Adds mappings that no call has made, as events of the thread `tid`.
    pub(super) fn give(&mut self, tid: u32, existing: Existing, time: u64) {
        let space = self.space_of(tid);
        if let Some(start) = existing.heap {
            self.spaces[space].heap = Some(Heap::at(start));
        }
        for mapped in existing.mappings {
            let end = mapped.start.saturating_add(mapped.length);
            let call = match mapped.path.as_str() {
                // The kernel's, which no program may map or leave.
                "[vsyscall]" => continue,
                "[heap]" => self.grow_heap(space, end),
                "[stack]" => {
                    let start = end.saturating_sub(STACK).min(mapped.start);
                    Some(self.given(space, start..end, &mapped))
                }
                _ => Some(self.given(space, mapped.start..end, &mapped)),
            };
            if let Some(call) = call {
                self.put(time, tid, What::Given { call });
            }
        }
    }

    fn given(&mut self, space: usize, range: Range<u64>, mapped: &Mapped) -> Call {
        let mapping = self.new_mapping();
        let file = match is_file(&mapped.path) {
            true => Some((self.file(mapped), mapped.offset)),
            false => None,
        };
        let regions = &mut self.spaces[space].regions;
        // Stacks may grow where others are.
        let inside = regions.pieces(&(range.start..mapped.start.max(range.start)));
        // The kernel maps a whole program, and then its parts over that.
        let over = regions.find(range.start);
        regions.set(whole(range.clone(), mapping));
        inside.into_iter().for_each(|piece| regions.set(piece));
        Call::Map {
            mapping,
            length: range.end - range.start,
            prot: prot(mapped.prot.into()),
            sharing: sharing(mapped.flags.into()),
            file,
            over,
            populate: false,
            no_reserve: mapped.flags & libc::MAP_NORESERVE as u32 != 0,
            huge: mapped.flags & libc::MAP_HUGETLB as u32 != 0,
        }
    }

    /// `mmap`.
    fn map(&mut self, space: usize, call: &mut Pending, result: i64, error: u16) -> Call {
        const POPULATES: u64 = (libc::MAP_POPULATE | libc::MAP_LOCKED) as u64;
        let [_, length, rights, flags, _, offset] = call.arguments;
        let has = |flag: i32| flags & flag as u64 != 0;
        let mapping = self.new_mapping();
        let start = result as u64;
        let mut file = None;
        if error == 0 {
            let regions = &mut self.spaces[space].regions;
            let end = start.saturating_add(length.next_multiple_of(self.page));
            if has(libc::MAP_FIXED) {
                call.pieces = regions.pieces(&(start..end));
            }
            regions.set(whole(start..end, mapping));
        }
        if !has(libc::MAP_ANONYMOUS) {
            let unknown = Mapped {
                length,
                offset,
                ..Mapped::default()
            };
            let mapped = call.mapped.as_ref().unwrap_or(&unknown);
            file = Some((self.file(mapped), offset));
        }
        Call::Map {
            mapping,
            length,
            prot: prot(rights),
            sharing: sharing(flags),
            file,
            over: call.pieces.first().map(|piece| piece.place),
            populate: flags & POPULATES != 0,
            no_reserve: has(libc::MAP_NORESERVE),
            huge: has(libc::MAP_HUGETLB),
        }
    }

    /// `shmat`.
    fn attach(&mut self, space: usize, call: &Pending, result: i64, error: u16) -> Call {
        let mapping = self.new_mapping();
        let mapped = call.mapped.as_ref();
        let length = mapped.map_or(0, |mapped| mapped.length);
        let start = result as u64;
        if error == 0 {
            let regions = &mut self.spaces[space].regions;
            regions.set(whole(start..start.saturating_add(length), mapping));
        }
        let file = mapped.cloned().map(|mapped| (self.file(&mapped), 0));
        let reads_only = call.arguments[2] & libc::SHM_RDONLY as u64 != 0;
        Call::Map {
            mapping,
            length,
            prot: Prot {
                read: true,
                write: !reads_only,
                execute: false,
            },
            sharing: Sharing::Shared,
            file,
            over: None,
            populate: false,
            no_reserve: false,
            huge: false,
        }
    }

    /// `brk`: the heap ends at `end` now.
    fn resize_heap(&mut self, space: usize, end: u64) -> Option<Call> {
        // The first call of a program asks where the heap begins.
        self.spaces[space].heap.get_or_insert(Heap::at(end));
        self.grow_heap(space, end)
    }

    fn grow_heap(&mut self, space: usize, end: u64) -> Option<Call> {
        let (new, page) = (self.mappings, self.page);
        let Space { regions, heap, .. } = &mut self.spaces[space];
        let heap = heap.as_mut()?;
        let mapping = *heap.mapping.get_or_insert(new);
        self.mappings += u32::from(mapping == new);
        let start = heap.start - heap.start % page;
        let end = end.max(start);
        let top = end.next_multiple_of(page);
        let old = std::mem::replace(&mut heap.top, top).max(start);
        regions.remove(top..old);
        // Only above the old end: parts below may have been replaced.
        regions.set(Piece {
            start: old.min(top),
            end: top,
            place: Place {
                mapping,
                offset: old.min(top) - start,
            },
        });
        let length = end - start;
        Some(Call::Break { mapping, length })
    }

    /// `mremap`; none if it is unknown what it moves.
    fn remap(&mut self, space: usize, call: &Pending, result: i64, error: u16) -> Option<Call> {
        let [old, length, new_length, flags, ..] = call.arguments;
        let at = call.pieces.first()?.place;
        let moves = error == 0 && result as u64 != old;
        let to = moves.then(|| self.new_mapping());
        let page = self.page;
        let regions = &mut self.spaces[space].regions;
        let start = result as u64;
        let end = start.saturating_add(new_length.next_multiple_of(page));
        let old_end = old.saturating_add(length.next_multiple_of(page));
        if let Some(mapping) = to {
            if flags & libc::MREMAP_DONTUNMAP as u64 == 0 && length != 0 {
                call.pieces
                    .iter()
                    .for_each(|&piece| regions.remove_piece(piece));
            }
            regions.set(whole(start..end, mapping));
        } else if error == 0 && end < old_end {
            regions.remove(end..old_end);
        } else if error == 0 {
            regions.set(Piece {
                start,
                end,
                place: at,
            });
        }
        Some(Call::Remap {
            at,
            length,
            new_length,
            to,
        })
    }

    /// The number of a file, which is at least as long as it is mapped.
    fn file(&mut self, mapped: &Mapped) -> u32 {
        let files = &mut self.recording.files;
        let key = (mapped.inode, mapped.path.clone());
        let number = *self.files.entry(key).or_insert_with(|| {
            let name = match self.anonymous {
                true => String::new(),
                false => mapped.path.clone(),
            };
            files.push(File { name, length: 0 });
            files.len() as u32 - 1
        });
        let length = &mut files[number as usize].length;
        *length = mapped.offset.saturating_add(mapped.length).max(*length);
        number
    }

    fn new_mapping(&mut self) -> u32 {
        self.mappings += 1;
        self.mappings - 1
    }
}

/// A call on a range of mapped memory; none if nothing is mapped there.
fn on_range(call: &Pending, page: u64) -> Option<Call> {
    let [_, length, third, ..] = call.arguments;
    let first = call.pieces.first()?;
    let at = first.place;
    let mapped: u64 = call.pieces.iter().map(Piece::length).sum();
    // Holes do not count, nor does the length that the caller of `shmdt` has not given.
    let length = match length.next_multiple_of(page) == mapped {
        true => length,
        false => mapped,
    };
    Some(match call.kind {
        Kind::Unmap | Kind::Detach => Call::Unmap { at, length },
        Kind::Protect => Call::Protect {
            at,
            length,
            prot: prot(third),
        },
        Kind::Advise => Call::Advise {
            at,
            length,
            advice: advice(third),
        },
        Kind::Lock => Call::Lock { at, length },
        Kind::Unlock => Call::Unlock { at, length },
        Kind::Sync => Call::Sync { at, length },
        Kind::InCore => Call::InCore { at, length },
        Kind::Map | Kind::Remap | Kind::Break | Kind::Attach | Kind::Other | Kind::Task => {
            return None;
        }
    })
}

fn whole(range: Range<u64>, mapping: u32) -> Piece {
    let place = Place { mapping, offset: 0 };
    Piece {
        start: range.start,
        end: range.end,
        place,
    }
}

/// Returns true if the kernel's name of a mapping is that of a file.
fn is_file(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//anon") && !path.starts_with("/dev/zero")
}

fn prot(rights: u64) -> Prot {
    let has = |right: i32| rights & right as u64 != 0;
    Prot {
        read: has(libc::PROT_READ),
        write: has(libc::PROT_WRITE),
        execute: has(libc::PROT_EXEC),
    }
}

/// By the flags of `mmap`; the bit is that of `MAP_SHARED_VALIDATE` too.
fn sharing(flags: u64) -> Sharing {
    match flags & libc::MAP_SHARED as u64 {
        0 => Sharing::Private,
        _ => Sharing::Shared,
    }
}

fn advice(number: u64) -> Advice {
    /// Since Linux 5.18.
    const DONTNEED_LOCKED: i32 = 24;
    match number as i32 {
        libc::MADV_DONTNEED | DONTNEED_LOCKED => Advice::Discard,
        libc::MADV_FREE => Advice::Free,
        libc::MADV_PAGEOUT => Advice::PageOut,
        libc::MADV_COLD => Advice::Cold,
        libc::MADV_REMOVE => Advice::Remove,
        libc::MADV_POPULATE_READ => Advice::PopulateRead,
        libc::MADV_POPULATE_WRITE => Advice::PopulateWrite,
        libc::MADV_HUGEPAGE => Advice::Huge,
        libc::MADV_NOHUGEPAGE => Advice::NoHuge,
        other => Advice::Other(other as u32),
    }
}
