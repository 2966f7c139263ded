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

    /// Empties the line's set at `at`; creates one if that is 0.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_several_words_do_not_mix() {
        for cpus in [64, 65, 129, 1024] {
            let mut sharers = Sharers::new(cpus);
            let (mut odd, mut even) = (0, 0);
            sharers.clear(&mut odd);
            sharers.clear(&mut even);
            for cpu in 0..cpus as u16 {
                sharers.insert(if cpu % 2 == 1 { odd } else { even }, cpu);
            }
            for (set, rest) in [(odd, 1), (even, 0)] {
                let members = || (0..cpus as u16).filter(|cpu| cpu % 2 == rest);
                assert!(sharers.iter(set).eq(members()), "{cpus} CPUs");
                let contained = (0..cpus as u16).filter(|&cpu| sharers.contains(set, cpu));
                assert!(contained.eq(members()), "{cpus} CPUs");
            }
            sharers.clear(&mut odd);
            assert_eq!(sharers.iter(odd).count(), 0);
            assert_eq!(sharers.iter(even).count(), cpus.div_ceil(2));
        }
    }
}
