//! The mappings of an address space, by address.

use recording::Place;
use std::collections::BTreeMap;
use std::ops::Range;

/// A part of a mapping that is in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub start: u64,
    pub end: u64,
    pub place: Place,
}

impl Piece {
    pub fn length(&self) -> u64 {
        self.end - self.start
    }

    /// The part of it in `range`; none if there is none.
    fn within(&self, range: &Range<u64>) -> Option<Piece> {
        let (start, end) = (self.start.max(range.start), self.end.min(range.end));
        let offset = self.place.offset + start.saturating_sub(self.start);
        let place = Place {
            offset,
            ..self.place
        };
        (start < end).then_some(Piece { start, end, place })
    }
}

/// The mappings of an address space: what is mapped later hides what was mapped before.
#[derive(Clone, Debug, Default)]
pub(super) struct Regions(BTreeMap<u64, Piece>);

impl Regions {
    /// The place that is mapped at `address`.
    pub fn find(&self, address: u64) -> Option<Place> {
        let (_, piece) = self.0.range(..=address).next_back()?;
        piece.within(&(address..address + 1)).map(|one| one.place)
    }

    /// The parts of mappings in `range`, in the order of addresses.
    pub fn pieces(&self, range: &Range<u64>) -> Vec<Piece> {
        let before = self.0.range(..range.start).next_back();
        let inside = self.0.range(range.start..range.end.max(range.start));
        let all = before.into_iter().chain(inside);
        all.filter_map(|(_, piece)| piece.within(range)).collect()
    }

    /// The parts of `mapping`.
    pub fn of(&self, mapping: u32) -> impl Iterator<Item = &Piece> {
        let all = self.0.values();
        all.filter(move |piece| piece.place.mapping == mapping)
    }

    /// Maps `piece`, over whatever is there.
    pub fn set(&mut self, piece: Piece) {
        self.remove(piece.start..piece.end);
        if piece.start < piece.end {
            self.0.insert(piece.start, piece);
        }
    }

    /// Unmaps `range`.
    pub fn remove(&mut self, range: Range<u64>) {
        let over: Vec<u64> = self.pieces(&range).iter().map(|one| one.start).collect();
        for at in over {
            let (&start, _) = self.0.range(..=at).next_back().expect("a piece is here");
            let whole = self.0.remove(&start).expect("found above");
            let rest = [whole.start..range.start, range.end..whole.end];
            let rest = rest.iter().filter_map(|part| whole.within(part));
            self.0.extend(rest.map(|piece| (piece.start, piece)));
        }
    }

    /// Unmaps what is still mapped of `piece`: what has been mapped there since stays.
    pub fn remove_piece(&mut self, piece: Piece) {
        let shift = piece.start.wrapping_sub(piece.place.offset);
        let range = piece.start..piece.end;
        let is_same = |one: &Piece| {
            let same = one.place.mapping == piece.place.mapping;
            same && one.start.wrapping_sub(one.place.offset) == shift
        };
        for one in self.pieces(&range).into_iter().filter(is_same) {
            self.remove(one.start..one.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(start: u64, end: u64, mapping: u32, offset: u64) -> Piece {
        let place = Place { mapping, offset };
        Piece { start, end, place }
    }

    #[test]
    fn a_hole_leaves_both_ends_with_their_offsets() {
        let mut regions = Regions::default();
        regions.set(piece(10, 20, 1, 0));
        regions.remove(13..15);
        let left = [piece(10, 13, 1, 0), piece(15, 20, 1, 5)];
        assert_eq!(regions.pieces(&(0..100)), left);
        assert_eq!(
            regions.pieces(&(12..16)),
            [piece(12, 13, 1, 2), piece(15, 16, 1, 5)]
        );
        let last = Place {
            mapping: 1,
            offset: 9,
        };
        assert_eq!((regions.find(14), regions.find(19)), (None, Some(last)));
    }

    #[test]
    fn what_is_mapped_later_hides_what_was_there() {
        let mut regions = Regions::default();
        regions.set(piece(10, 20, 1, 0));
        regions.set(piece(15, 25, 2, 0));
        regions.set(piece(12, 13, 3, 0));
        let all = regions.pieces(&(0..100));
        let expected = [
            piece(10, 12, 1, 0),
            piece(12, 13, 3, 0),
            piece(13, 15, 1, 3),
            piece(15, 25, 2, 0),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn a_piece_that_was_replaced_stays_as_it_is_now() {
        let mut regions = Regions::default();
        let old = piece(10, 20, 1, 0);
        regions.set(old);
        regions.set(piece(14, 16, 2, 0));
        regions.remove_piece(old);
        assert_eq!(regions.pieces(&(0..100)), [piece(14, 16, 2, 0)]);
    }
}
