//! The files that a guest begins with.

mod archive;

use crate::{Error, tool};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use std::collections::BTreeMap;
use std::fs::{self, DirEntry};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tree of files. Paths begin without a slash; those of folders sort before those of their
/// contents.
#[derive(Clone, Debug)]
pub struct Files {
    entries: BTreeMap<String, Entry>,
}

/// A file in the guest.
#[derive(Clone, Debug)]
enum Entry {
    Folder,
    /// The content is that of a file of this computer.
    Copy {
        from: PathBuf,
        mode: u32,
    },
    Text(Vec<u8>),
    Link(String),
    /// A character device's major and minor number.
    Device(u32, u32),
}

/// Character devices that every guest has: the console, and those that programs expect. `ttyS1` is
/// where Linux reports.
const DEVICES: [(&str, u32, u32); 5] = [
    ("console", 5, 1),
    ("tty", 5, 0),
    ("ttyS1", 4, 65),
    ("null", 1, 3),
    ("zero", 1, 5),
];

impl Files {
    /// The folders and devices that every guest has.
    pub fn bare() -> Self {
        let mut files = Files {
            entries: BTreeMap::new(),
        };
        for folder in ["bin", "dev", "etc", "proc", "sys", "tmp", "usr"] {
            files.entries.insert(folder.into(), Entry::Folder);
        }
        for (name, major, minor) in DEVICES {
            let device = Entry::Device(major, minor);
            files.entries.insert(format!("dev/{name}"), device);
        }
        files
    }

    /// The folders and devices of [`Files::bare`], and busybox under each of its names.
    ///
    /// # Errors
    /// Fails if busybox is missing, or needs shared libraries.
    pub fn with_busybox() -> Result<Self, Error> {
        let busybox = tool::BUSYBOX.find()?;
        if dynamic_linker(&busybox)?.is_some() {
            return Err(tool::BUSYBOX.missing());
        }
        let list = Command::new(&busybox).arg("--list").output();
        let list = list.map_err(Error::at(&busybox))?;
        let mut files = Files::bare();
        files.add(&busybox, "bin/busybox")?;
        let names = String::from_utf8_lossy(&list.stdout).into_owned();
        for name in names.lines().filter(|name| *name != "busybox") {
            files.link(&format!("bin/{name}"), "busybox");
        }
        files.link("sbin", "bin");
        files.link("usr/bin", "../bin");
        files.link("usr/sbin", "../bin");
        Ok(files)
    }

    /// The files of a system's root directory, such as debootstrap makes, but for its devices, and
    /// the folders and devices of [`Files::bare`].
    ///
    /// # Errors
    /// As [`Files::add`].
    pub fn of_root(folder: &Path) -> Result<Self, Error> {
        let mut files = Files::bare();
        let devices = folder.join("dev");
        for entry in inside(folder)? {
            if entry.path() != devices {
                files.add_entry(&entry, "")?;
            }
        }
        Ok(files)
    }

    /// Adds a file of this computer, with its mode, or a folder with all that is in it; folders
    /// above it are made.
    ///
    /// # Errors
    /// Fails if something cannot be read, has a name that is not UTF-8, or is not a file, a folder
    /// or a link.
    pub fn add(&mut self, from: &Path, at: &str) -> Result<(), Error> {
        let data = fs::symlink_metadata(from).map_err(Error::at(from))?;
        let kind = data.file_type();
        if kind.is_dir() {
            return self.add_folder(from, at);
        }
        let entry = if kind.is_symlink() {
            let target = fs::read_link(from).map_err(Error::at(from))?;
            Entry::Link(utf8(from, target.into_os_string().into_string().ok())?)
        } else if kind.is_file() {
            let mode = data.permissions().mode() & 0o7777;
            let from = from.to_owned();
            Entry::Copy { from, mode }
        } else if kind.is_char_device() || kind.is_block_device() {
            return Err(Error::unusable(from, "a guest has its own devices"));
        } else {
            return Err(Error::unusable(from, "not a file, a folder or a link"));
        };
        self.insert(at, entry);
        Ok(())
    }

    fn add_folder(&mut self, from: &Path, at: &str) -> Result<(), Error> {
        if !at.is_empty() {
            self.insert(at, Entry::Folder);
        }
        let mut inside = inside(from)?.into_iter();
        inside.try_for_each(|entry| self.add_entry(&entry, at))
    }

    /// Adds an entry of a folder that is at `at` in the guest.
    fn add_entry(&mut self, entry: &DirEntry, at: &str) -> Result<(), Error> {
        let name = utf8(&entry.path(), entry.file_name().into_string().ok())?;
        let at = format!("{at}/{name}");
        self.add(&entry.path(), at.trim_start_matches('/'))
    }

    /// Adds a file with this content.
    pub fn write(&mut self, at: &str, content: impl Into<Vec<u8>>) {
        self.insert(at, Entry::Text(content.into()));
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, at: &str, target: &str) {
        self.insert(at, Entry::Link(target.to_owned()));
    }

    /// Returns true if there is something at a path that begins with a slash.
    pub fn contains(&self, path: &str) -> bool {
        let within = path.trim_start_matches('/');
        self.entries.contains_key(&self.resolved(within))
    }

    /// A path without links to folders on its way.
    fn resolved(&self, path: &str) -> String {
        let mut done = String::new();
        for part in path.split('/') {
            done = match (self.entries.get(&done), done.is_empty()) {
                (Some(Entry::Link(target)), _) => {
                    format!("{}/{part}", target.trim_start_matches("../"))
                }
                (_, true) => part.to_owned(),
                (_, false) => format!("{done}/{part}"),
            };
        }
        done
    }

    fn insert(&mut self, at: &str, entry: Entry) {
        let at = self.resolved(at);
        let above = at.match_indices('/').map(|(end, _)| &at[..end]);
        for folder in above {
            let missing = || Entry::Folder;
            self.entries
                .entry(folder.to_owned())
                .or_insert_with(missing);
        }
        match (self.entries.get(&at), &entry) {
            // A folder of the user may have the name of an existing one, or of a link to it.
            (Some(Entry::Folder | Entry::Link(_)), Entry::Folder) => {}
            _ => drop(self.entries.insert(at, entry)),
        }
    }
}

/// The entries of a folder.
fn inside(folder: &Path) -> Result<Vec<DirEntry>, Error> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect);
    entries.map_err(Error::at(folder))
}

fn utf8(path: &Path, name: Option<String>) -> Result<String, Error> {
    name.ok_or_else(|| Error::unusable(path, "names in a guest's archive must be UTF-8"))
}

/// The path of the dynamic linker that a program needs; `None` if it is static, or no ELF file.
///
/// # Errors
/// Fails if the file cannot be read, or is a program of another architecture.
pub fn dynamic_linker(file: &Path) -> Result<Option<String>, Error> {
    let bytes = fs::read(file).map_err(Error::at(file))?;
    if !bytes.starts_with(&elf::ELFMAG) {
        return Ok(None);
    }
    let strange = || Error::unusable(file, "not a program for x86-64");
    let header = elf::FileHeader64::<Endianness>::parse(&*bytes).map_err(|_| strange())?;
    let endian = header.endian().map_err(|_| strange())?;
    if header.e_machine(endian) != elf::EM_X86_64 {
        return Err(strange());
    }
    let parts = header
        .program_headers(endian, &*bytes)
        .map_err(|_| strange())?;
    let mut names = parts
        .iter()
        .filter_map(|part| part.interpreter(endian, &*bytes).transpose());
    let name = names.next().transpose().map_err(|_| strange())?;
    Ok(name.map(|name| String::from_utf8_lossy(name).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary() -> tempfile::TempDir {
        tempfile::tempdir().expect("a folder")
    }

    #[test]
    fn a_tree_keeps_its_shape_modes_and_links() {
        let folder = temporary();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).expect("folders");
        fs::write(inner.join("c"), "text").expect("a file");
        std::os::unix::fs::symlink("b/c", folder.path().join("a/l")).expect("a link");
        let mut files = Files::bare();
        files.add(folder.path(), "").expect("readable");
        for path in ["/a", "/a/b", "/a/b/c", "/a/l", "/dev/console"] {
            assert!(files.contains(path), "{path}");
        }
        assert!(!files.contains("/a/c"));
    }

    #[test]
    fn a_root_keeps_its_links_and_gets_a_guests_devices() {
        let folder = temporary();
        fs::create_dir_all(folder.path().join("usr/bin")).expect("folders");
        fs::create_dir(folder.path().join("dev")).expect("a folder");
        fs::write(folder.path().join("usr/bin/ls"), "").expect("a file");
        fs::write(folder.path().join("dev/own"), "").expect("a file");
        std::os::unix::fs::symlink("usr/bin", folder.path().join("bin")).expect("a link");
        let files = Files::of_root(folder.path()).expect("readable");
        for path in ["/bin/ls", "/usr/bin/ls", "/dev/console", "/proc", "/tmp"] {
            assert!(files.contains(path), "{path}");
        }
        assert!(matches!(files.entries["bin"], Entry::Link(_)));
        assert!(!files.contains("/dev/own"));
        let missing = folder.path().join("missing");
        assert!(Files::of_root(&missing).is_err());
    }

    #[test]
    fn what_lies_behind_a_link_is_found_and_put_there() {
        let mut files = Files::bare();
        files.link("usr/bin", "../bin");
        files.write("usr/bin/x", "");
        assert!(files.contains("/bin/x") && files.contains("/usr/bin/x"));
        let folder = temporary();
        fs::create_dir_all(folder.path().join("usr/bin")).expect("folders");
        fs::write(folder.path().join("usr/bin/y"), "").expect("a file");
        files.add(folder.path(), "").expect("readable");
        assert!(files.contains("/bin/y"));
    }

    #[test]
    fn programs_that_need_shared_libraries_are_told_apart() {
        let own = std::env::current_exe().expect("a program");
        let linker = dynamic_linker(&own).expect("readable");
        assert!(
            linker.is_some_and(|path| path.starts_with('/')),
            "tests are dynamic"
        );
        let folder = temporary();
        let script = folder.path().join("script");
        fs::write(&script, "#!/bin/sh\n").expect("a file");
        assert_eq!(dynamic_linker(&script).expect("readable"), None);
        let broken = folder.path().join("broken");
        fs::write(&broken, b"\x7fELF").expect("a file");
        let error = dynamic_linker(&broken).expect_err("too short");
        assert!(error.to_string().contains("not a program for x86-64"));
    }
}
