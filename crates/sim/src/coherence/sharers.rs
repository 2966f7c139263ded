//! Sets of CPUs, one for each line that has ever been shared.

/// The sets, in one array; the first is never used, so that 0 can mean "none".
pub(super) struct Sharers {
    words: Vec<u64>,
    /// Words in a set.
    width: usize,
}

impl Sharers {
    pub(super) fn new(cpus: usize) -> Self {
        let width = cpus.div_ceil(64);
        Sharers {
            words: vec![0; width],
            width,
        }
    }

    /// Empties the set at `at`, the line's; creates one if that is 0.
    pub(super) fn clear(&mut self, at: &mut u32) {
        if *at == 0 {
            *at = (self.words.len() / self.width) as u32;
            self.words.resize(self.words.len() + self.width, 0);
        } else {
            self.set_mut(*at).fill(0);
        }
    }

    #[inline]
    pub(super) fn contains(&self, at: u32, cpu: u16) -> bool {
        self.set(at)[usize::from(cpu) / 64] & 1 << (cpu % 64) != 0
    }

    pub(super) fn insert(&mut self, at: u32, cpu: u16) {
        self.set_mut(at)[usize::from(cpu) / 64] |= 1 << (cpu % 64);
    }

    /// The CPUs in the set, ascending.
    pub(super) fn iter(&self, at: u32) -> impl Iterator<Item = u16> + '_ {
        self.set(at).iter().enumerate().flat_map(|(index, &word)| {
            let mut rest = word;
            core::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    (index * 64) as u16 + bit as u16
                })
            })
        })
    }

    #[inline]
    fn set(&self, at: u32) -> &[u64] {
        &self.words[at as usize * self.width..][..self.width]
    }

    fn set_mut(&mut self, at: u32) -> &mut [u64] {
        &mut self.words[at as usize * self.width..][..self.width]
    }
}
