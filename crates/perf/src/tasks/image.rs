//! The executable memory of an address space.

use crate::event::Mapping;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names of mapped files, each once.
#[derive(Debug, Default)]
pub(crate) struct Files {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Files {
    pub fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// All names, by number.
    pub fn names(&self) -> &[String] {
        &self.names
    }
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub file: u32,
    pub offset: u64,
}

/// The executable memory of an address space. Copies are cheap: `fork` makes many.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// Different for images that may differ.
    pub id: u64,
    /// Where its files are, if their names are those of another root directory or other mounts.
    root: Arc<str>,
    regions: Arc<BTreeMap<u64, Region>>,
}

/// Images that share their regions with others, by the regions' address, and their regions with new
/// numbers of files.
#[derive(Default)]
pub(crate) struct Renumbered(HashMap<*const BTreeMap<u64, Region>, Arc<BTreeMap<u64, Region>>>);

#[derive(Clone, Copy, Debug)]
struct Region {
    end: u64,
    place: Place,
}

impl Image {
    /// An empty image.
    pub fn new() -> Image {
        Image {
            id: fresh(),
            root: Arc::default(),
            regions: Arc::default(),
        }
    }

    /// The image, whose files are below `root` from now on.
    pub fn below(self, root: &str) -> Image {
        Image {
            root: root.into(),
            ..self
        }
    }

    /// Drops all mappings: a program takes the place of another.
    pub fn clear(&mut self) {
        self.id = fresh();
        self.regions = Arc::default();
    }

    /// Adds a mapping, which hides earlier ones in its range.
    pub fn map(&mut self, mapping: &Mapping, files: &mut Files) {
        let file = if mapping.path.starts_with('/') && !mapping.path.starts_with("//") {
            files.number(&format!("{}{}", self.root, mapping.path))
        } else {
            files.number(&mapping.path)
        };
        let place = Place {
            file,
            offset: mapping.offset,
        };
        let regions = Arc::make_mut(&mut self.regions);
        carve(regions, mapping.start, mapping.end);
        regions.insert(
            mapping.start,
            Region {
                end: mapping.end,
                place,
            },
        );
        self.id = fresh();
    }

    /// Gives its files the numbers that `file` says. `known` has the images that have got theirs.
    pub fn renumber(&mut self, known: &mut Renumbered, mut file: impl FnMut(u32) -> u32) {
        let mut renumbered = |regions: &BTreeMap<u64, Region>| {
            let mut regions = regions.clone();
            let places = regions.values_mut().map(|region| &mut region.place);
            places.for_each(|place| place.file = file(place.file));
            Arc::new(regions)
        };
        let old = Arc::as_ptr(&self.regions);
        let new = known
            .0
            .entry(old)
            .or_insert_with(|| renumbered(&self.regions));
        self.regions = Arc::clone(new);
    }

    /// The places at which executable parts of files begin.
    pub fn regions(&self) -> impl Iterator<Item = (u64, Place)> {
        self.regions
            .iter()
            .map(|(&start, region)| (start, region.place))
    }

    /// The place mapped at `address`.
    pub fn find(&self, address: u64) -> Option<Place> {
        let (start, region) = self.regions.range(..=address).next_back()?;
        let offset = region.place.offset + (address - start);
        (address < region.end).then_some(Place {
            offset,
            ..region.place
        })
    }
}

/// Returns true if a file is the C library, the loader or the kernel's page.
pub(crate) fn is_system(path: &str) -> bool {
    const SYSTEM: [&str; 7] = [
        "libc.",
        "libc-",
        "libpthread",
        "ld-",
        "ld.",
        "[vdso]",
        "[vsyscall]",
    ];
    let name = path.rsplit('/').next().unwrap_or(path);
    SYSTEM.iter().any(|start| name.starts_with(start))
}

/// Cuts `start..end` out of the regions.
fn carve(regions: &mut BTreeMap<u64, Region>, start: u64, end: u64) {
    let overlaps = |(&at, region): (&u64, &Region)| (region.end > start).then_some((at, *region));
    // Regions are disjoint: only the last that begins before `start` can reach into it.
    let before = regions.range(..start).next_back().and_then(overlaps);
    let within: Vec<_> = regions.range(start..end).filter_map(overlaps).collect();
    for (at, region) in before.into_iter().chain(within) {
        regions.remove(&at);
        if at < start {
            regions.insert(
                at,
                Region {
                    end: start,
                    ..region
                },
            );
        }
        if region.end > end {
            let offset = region.place.offset + (end - at);
            let place = Place {
                offset,
                ..region.place
            };
            regions.insert(end, Region { place, ..region });
        }
    }
}

fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Relaxed: the numbers only need to differ.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(start: u64, end: u64, offset: u64, path: &str) -> Mapping {
        Mapping {
            start,
            end,
            offset,
            path: path.into(),
        }
    }

    #[test]
    fn an_address_is_found_in_its_file() {
        let (mut image, mut files) = (Image::new(), Files::default());
        image.map(&mapping(0x1000, 0x3000, 0x500, "a"), &mut files);
        let found = image.find(0x1010).expect("mapped");
        assert_eq!(
            (files.names()[found.file as usize].as_str(), found.offset),
            ("a", 0x510)
        );
        assert_eq!(image.find(0x3000), None);
        assert_eq!(image.find(0xfff), None);
    }

    #[test]
    fn a_later_mapping_hides_an_earlier_one() {
        let (mut image, mut files) = (Image::new(), Files::default());
        image.map(&mapping(0x1000, 0x5000, 0, "a"), &mut files);
        image.map(&mapping(0x2000, 0x3000, 0, "b"), &mut files);
        let found: Vec<_> = [0x1800, 0x2800, 0x3800]
            .map(|at| image.find(at).map(|place| (place.file, place.offset)))
            .into();
        assert_eq!(
            found,
            [Some((0, 0x800)), Some((1, 0x800)), Some((0, 0x2800))]
        );
    }

    #[test]
    fn the_c_library_is_the_systems() {
        assert!(is_system("/usr/lib/x86_64-linux-gnu/libc.so.6"));
        assert!(is_system("/lib64/ld-linux-x86-64.so.2") && is_system("[vdso]"));
        assert!(!is_system("/usr/bin/ld") && !is_system("/usr/lib/libcurl.so.4"));
    }

    #[test]
    fn files_of_other_mounts_are_found_below_their_root() {
        let (mut image, mut files) = (Image::new().below("/proc/7/root"), Files::default());
        for path in ["/bin/a", "//anon", "[vdso]"] {
            image.map(&mapping(0x1000, 0x2000, 0, path), &mut files);
        }
        image.clear();
        assert_eq!(image.find(0x1000), None);
        assert_eq!(files.names(), ["/proc/7/root/bin/a", "//anon", "[vdso]"]);
    }

    #[test]
    fn a_childs_mappings_are_not_the_parents() {
        let (mut parent, mut files) = (Image::new(), Files::default());
        parent.map(&mapping(0x1000, 0x2000, 0, "a"), &mut files);
        let mut child = parent.clone();
        assert_eq!(child.id, parent.id);
        child.map(&mapping(0x8000, 0x9000, 0, "b"), &mut files);
        assert_ne!(child.id, parent.id);
        assert!(child.find(0x8000).is_some() && parent.find(0x8000).is_none());
    }
}
