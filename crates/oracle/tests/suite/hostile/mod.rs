//! Scripts with hostile numbers: sequences in which systems once differed or crashed, with some
//! words changed.

use std::fs;
use std::path::Path;

/// Ends of the addresses that tasks may map and that processors handle, and of numbers.
const EDGES: [u64; 9] = [
    0,
    1 << 12,
    1 << 16,
    1 << 21,
    1 << 28,
    1 << 45,
    1 << 47,
    1 << 63,
    1 << 40,
];
/// Distances from the edges.
const APART: [u64; 6] = [0, 1, 8, 4095, 4096, 8192];

/// The directory of the scripts that are changed.
const SEQUENCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../oracle/tests/sequences");

/// The lines of all scripts.
pub fn scripts() -> Vec<Vec<String>> {
    let files = fs::read_dir(Path::new(SEQUENCES)).expect("sequences");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let lines = |path| {
        let text = fs::read_to_string(path).expect("a sequence");
        let lines = text.lines().filter(|line| line.contains(':'));
        lines.map(str::to_owned).collect()
    };
    paths.into_iter().map(lines).collect()
}

/// One of `scripts` with up to six words changed; the same for the same seed.
pub fn mutated(seed: u64, scripts: &[Vec<String>]) -> String {
    let mut random = Random(seed);
    let mut lines: Vec<String> = random.one_of(scripts).clone();
    if random.below(3) == 0 {
        lines.extend(random.one_of(scripts).iter().cloned());
    }
    for _ in 0..=random.below(6) {
        let line = random.below(lines.len());
        match random.below(12) {
            0 => {
                let other: &Vec<String> = random.one_of(scripts);
                lines[line] = random.one_of(other).clone();
            }
            1 => lines.push(lines[line].clone()),
            _ => lines[line] = random.changed(&lines[line]),
        }
    }
    lines.join("\n")
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % bound as u64) as usize
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// The line with one of its numbers or addresses replaced.
    fn changed(&mut self, line: &str) -> String {
        let mut words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        let with_number = |word: &String| word.contains(|letter: char| letter.is_ascii_digit());
        // Neither the process nor the name of a handle.
        let numbers = (1..words.len()).filter(|&index| words[index - 1] != "as");
        let numbers: Vec<_> = numbers
            .filter(|&index| with_number(&words[index]))
            .collect();
        if numbers.is_empty() {
            return line.to_owned();
        }
        let word = &mut words[*self.one_of(&numbers)];
        *word = match (word.chars().next(), self.below(3)) {
            (Some('w' | 'b' | 'h'), 0) => self.number(),
            (Some('w' | 'b'), 1) => format!("{}{}", &word[..1], self.value() / 4096),
            (Some('w' | 'b'), _) => format!("w{}+{}", self.below(2048), self.below(512) * 8),
            (Some('h'), _) => format!("h{}:{}", self.below(9), self.value() / 4096),
            (Some('@'), _) => format!("@{}", self.number()),
            _ => self.number(),
        };
        words.join(" ")
    }

    fn number(&mut self) -> String {
        let value = self.value();
        match self.below(4) {
            0 => value.to_string(),
            1 => format!("{}p", value / 4096),
            _ => format!("{value:#x}"),
        }
    }

    /// A number near an edge, from zero or from the window's start.
    fn value(&mut self) -> u64 {
        let (edge, apart) = (*self.one_of(&EDGES), *self.one_of(&APART));
        let value = match self.below(2) {
            0 => edge.wrapping_add(apart),
            _ => edge.wrapping_sub(apart),
        };
        match self.below(4) {
            0 => value.wrapping_sub((1 << 45) + self.below(2048) as u64 * 4096),
            _ => value,
        }
    }
}
