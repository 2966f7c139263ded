//! The places where tasks run: the cores and CPUs that this process may use.

use crate::harness::Failure;
use std::collections::BTreeMap;
use std::{fs, io};

/// The place to which a task is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Affinity {
    /// A core, with all its hardware threads; will-it-scale's default.
    Cores,
    /// One hardware thread.
    Cpus,
    /// Nothing: the scheduler decides.
    None,
}

/// A set of CPUs as the kernel takes it, large enough for every kernel there is
/// (x86 stops at 8192 CPUs).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mask([u64; Mask::WORDS]);

impl Mask {
    const WORDS: usize = 8192 / 64;

    /// The set of these CPUs.
    pub fn of(cpus: &[usize]) -> Self {
        let mut mask = Mask([0; Self::WORDS]);
        for &cpu in cpus {
            if let Some(word) = mask.0.get_mut(cpu / 64) {
                *word |= 1 << (cpu % 64);
            }
        }
        mask
    }

    /// The CPUs that the calling thread may use.
    pub fn current() -> io::Result<Self> {
        let mut mask = Mask([0; Self::WORDS]);
        // SAFETY: the buffer has the size given; the kernel takes any multiple of a
        // word that holds its CPUs.
        let result =
            unsafe { libc::sched_getaffinity(0, size_of::<Mask>(), mask.0.as_mut_ptr().cast()) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(mask)
    }

    /// Makes the calling thread, and threads and processes that it creates from now on, use these
    /// CPUs.
    fn apply(&self) -> io::Result<()> {
        // SAFETY: the buffer has the size given, and is only read.
        let result =
            unsafe { libc::sched_setaffinity(0, size_of::<Mask>(), self.0.as_ptr().cast()) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// The CPUs, ascending.
    pub fn cpus(&self) -> Vec<usize> {
        (0..Self::WORDS * 64)
            .filter(|cpu| self.0[cpu / 64] & (1 << (cpu % 64)) != 0)
            .collect()
    }
}

/// The number of CPUs that the calling thread may use.
pub fn cpus() -> Result<usize, Failure> {
    let mask = Mask::current().map_err(Failure::start("CPU affinity"))?;
    Ok(mask.cpus().len())
}

/// Runs `create` while the calling thread is pinned to the place of `task`, so that
/// the created task is born there, with its memory; then goes back.
pub fn born_at<T>(
    places: &[Mask],
    task: usize,
    create: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    if places.is_empty() {
        return create();
    }
    let before = Mask::current()?;
    places[task % places.len()].apply()?;
    let created = create();
    before.apply()?;
    created
}

/// The places that tasks are dealt over in turn; none if the scheduler decides.
pub fn places(affinity: Affinity) -> io::Result<Vec<Mask>> {
    let cores = cores()?;
    Ok(match affinity {
        Affinity::Cores => cores.iter().map(|core| Mask::of(&core.cpus)).collect(),
        Affinity::Cpus => cores
            .iter()
            .flat_map(|core| &core.cpus)
            .map(|&cpu| Mask::of(&[cpu]))
            .collect(),
        Affinity::None => Vec::new(),
    })
}

/// A core and those of its hardware threads that this process may use.
#[derive(Debug, PartialEq, Eq)]
pub struct Core {
    /// The socket.
    pub package: usize,
    /// The CPUs, ascending.
    pub cpus: Vec<usize>,
}

/// The cores that this process may use, by socket and number.
pub fn cores() -> io::Result<Vec<Core>> {
    let number = |cpu: usize, file: &str| -> Option<usize> {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{file}");
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    Ok(group(&Mask::current()?.cpus(), number))
}

/// Groups `cpus` by package, die and core as `number` (CPU, file in sysfs) knows
/// them; a CPU without such a number is a core of its own.
fn group(cpus: &[usize], number: impl Fn(usize, &str) -> Option<usize>) -> Vec<Core> {
    let mut cores: BTreeMap<(usize, usize, Result<usize, usize>), Vec<usize>> = BTreeMap::new();
    for &cpu in cpus {
        let package = number(cpu, "physical_package_id").unwrap_or(0);
        let die = number(cpu, "die_id").unwrap_or(0);
        let core = number(cpu, "core_id").ok_or(cpu);
        cores.entry((package, die, core)).or_default().push(cpu);
    }
    let core = |((package, _, _), cpus)| Core { package, cpus };
    cores.into_iter().map(core).collect()
}

/// Sockets × cores × threads that this process may use, as `2x24x2`; with a
/// plain count of CPUs if the sockets or cores differ.
pub fn shape(cores: &[Core]) -> String {
    let mut packages: BTreeMap<usize, usize> = BTreeMap::new();
    for core in cores {
        *packages.entry(core.package).or_default() += 1;
    }
    let cpus: usize = cores.iter().map(|core| core.cpus.len()).sum();
    let (sockets, per_socket) = (packages.len(), cores.len() / packages.len().max(1));
    let threads = cores.first().map_or(0, |core| core.cpus.len());
    let even = packages.values().all(|&count| count == per_socket)
        && cores.iter().all(|core| core.cpus.len() == threads);
    if even {
        format!("{sockets}x{per_socket}x{threads}")
    } else {
        format!("{cpus} CPUs")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two sockets of two cores of two threads, numbered as Linux does: all first
    /// threads, then all second ones.
    fn two_by_two(cpu: usize, file: &str) -> Option<usize> {
        match file {
            "physical_package_id" => Some(cpu % 4 / 2),
            "core_id" => Some(cpu % 2),
            _ => None,
        }
    }

    #[test]
    fn cores_keep_their_threads_together() {
        let cores = group(&[0, 1, 2, 3, 4, 5, 6, 7], two_by_two);
        let cpus: Vec<_> = cores.iter().map(|core| core.cpus.clone()).collect();
        assert_eq!(cpus, [[0, 4], [1, 5], [2, 6], [3, 7]]);
        assert_eq!(shape(&cores), "2x2x2");
    }

    #[test]
    fn only_allowed_cpus_count() {
        let cores = group(&[1, 2, 6], two_by_two);
        let cpus: Vec<_> = cores.iter().map(|core| core.cpus.clone()).collect();
        assert_eq!(cpus, [vec![1], vec![2, 6]]);
        assert_eq!(shape(&cores), "3 CPUs");
    }

    #[test]
    fn without_sysfs_each_cpu_is_a_core() {
        let cores = group(&[0, 5], |_, _| None);
        assert_eq!((cores.len(), shape(&cores)), (2, "1x2x1".into()));
    }

    #[test]
    fn pinning_is_undone() {
        let before = Mask::current().expect("affinity");
        let places = places(Affinity::Cpus).expect("places");
        let last = places.len() - 1;
        let inside = born_at(&places, last, Mask::current).expect("pinned");
        assert_eq!(inside, places[last]);
        assert_eq!(Mask::current().expect("affinity"), before);
    }
}
