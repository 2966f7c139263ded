//! Files and directories that the user names for results.
//!
//! A regular file is replaced as a whole, so that no reader sees half of it; links are followed,
//! and other files (a terminal, a pipe, `/dev/null`) are written through, never replaced.

use bench::Failure;
use std::ffi::{CString, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most symbolic links that the kernel follows.
const LINKS: usize = 40;

/// Fails as [`write()`] would, as far as can be told beforehand: a measurement that takes long asks
/// first.
pub fn check(path: &Path) -> Result<(), Failure> {
    let checked = target(path).and_then(|target| match fs::metadata(&target) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => accessible(&target, libc::W_OK),
        Err(_) => takes_files(parent(&target)),
    });
    checked.map_err(Failure::file(path))
}

/// Fails if no directory can be made at `path`, or an existing one takes no files.
pub fn check_directory(path: &Path) -> Result<(), Failure> {
    let mut nearest = path;
    while fs::symlink_metadata(nearest).is_err() && nearest.parent().is_some() {
        nearest = parent(nearest);
    }
    let checked = match fs::metadata(nearest) {
        Ok(found) if !found.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        Ok(_) => takes_files(nearest),
        Err(error) => Err(error),
    };
    checked.map_err(Failure::file(path))
}

/// Makes a directory of this name in the current one, with a number behind it if the name is taken:
/// a directory that the user has not named overwrites nothing.
pub fn new_directory(name: &str) -> Result<PathBuf, Failure> {
    let mut path = PathBuf::from(name);
    for number in 2.. {
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                path = PathBuf::from(format!("{name}-{number}"));
            }
            made => return made.map(|()| path.clone()).map_err(Failure::file(&path)),
        }
    }
    unreachable!("some number is free")
}

/// Writes `bytes` to the file that `path` leads to.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = target(path).and_then(|target| match fs::metadata(&target) {
        Ok(found) if stays(&target, &found) => through(&target, bytes),
        Ok(found) => replace(&target, bytes, Some(&found)),
        Err(_) => replace(&target, bytes, None),
    });
    written.map_err(Failure::file(path))
}

/// Returns true if the existing file keeps its place: it has another name, or it is no regular
/// file, or no file can be made in its directory.
fn stays(path: &Path, found: &Metadata) -> bool {
    let beside = accessible(parent(path), libc::W_OK | libc::X_OK);
    !found.is_file() || found.nlink() > 1 || beside.is_err()
}

fn through(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).truncate(true).open(path)?;
    file.write_all(bytes)
}

/// Writes a file in the directory of `path`, and then renames it to `path`, with the permissions of
/// the old file.
fn replace(path: &Path, bytes: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = (|| {
        let mut file = File::create_new(&beside)?;
        file.write_all(bytes)?;
        if let Some(old) = old {
            file.set_permissions(old.permissions())?;
        }
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        // The file may not exist; if it does it is incomplete.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Where `path` leads by symbolic links, even if nothing exists there. A link of the kernel's own,
/// as in `/proc/self/fd`, names nothing but is one that can be opened.
fn target(path: &Path) -> io::Result<PathBuf> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Ok(path.to_owned());
    }
    let mut target = path.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = parent(&target).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

fn parent(path: &Path) -> &Path {
    let parent = path.parent().unwrap_or(path);
    if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    }
}

/// Fails if no file can be made in `directory`. Rights alone do not tell: root has them in `/proc`
/// too.
fn takes_files(directory: &Path) -> io::Result<()> {
    let probe = directory.join(format!(".scalevm-{}.part", std::process::id()));
    File::create_new(&probe)?;
    fs::remove_file(&probe)
}

fn accessible(path: &Path, how: i32) -> io::Result<()> {
    let name = CString::new(OsString::from(path).as_bytes())?;
    // SAFETY: the name is a C string that outlives the call.
    match unsafe { libc::access(name.as_ptr(), how) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().expect("a directory")
    }

    fn read(path: &Path) -> String {
        fs::read_to_string(path).expect("a file")
    }

    #[test]
    fn a_file_is_replaced_with_its_permissions() {
        let folder = folder();
        let file = folder.path().join("file");
        fs::write(&file, "old and longer").expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
        let inode = fs::metadata(&file).expect("a file").ino();
        write(&file, b"new").expect("written");
        let found = fs::metadata(&file).expect("a file");
        assert_eq!((read(&file).as_str(), found.mode() & 0o777), ("new", 0o640));
        assert_ne!(found.ino(), inode, "readers of the old one keep it");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }

    #[test]
    fn links_stay_links() {
        let folder = folder();
        let [file, hard, soft, dangling] =
            ["file", "hard", "soft", "dangling"].map(|name| folder.path().join(name));
        fs::write(&file, "old").expect("written");
        symlink("file", &soft).expect("a link");
        symlink("later", &dangling).expect("a link");
        write(&soft, b"through").expect("written");
        assert_eq!(read(&file), "through");
        fs::hard_link(&file, &hard).expect("a link");
        write(&file, b"both").expect("written");
        assert_eq!(read(&hard), "both");
        write(&dangling, b"made").expect("written");
        assert_eq!(read(&folder.path().join("later")), "made");
        for link in [soft, dangling] {
            assert!(fs::symlink_metadata(link).expect("a link").is_symlink());
        }
    }

    #[test]
    fn what_is_no_file_is_written_through() {
        let folder = folder();
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo").success());
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || {
                let mut text = String::new();
                let read = File::open(pipe).and_then(|mut file| file.read_to_string(&mut text));
                read.map(|_| text)
            })
        };
        check(&pipe).expect("a pipe can be written");
        write(&pipe, b"page").expect("written");
        assert_eq!(reader.join().expect("a reader").expect("read"), "page");
        let kind = fs::symlink_metadata(&pipe).expect("a pipe").file_type();
        assert!(kind.is_fifo());
        // By a link, so that a file replaced in error is not the device.
        let full = folder.path().join("full");
        symlink("/dev/full", &full).expect("a link");
        let error = write(&full, b"page").expect_err("it is full").to_string();
        assert!(error.contains("full: No space left"), "{error}");
        let kind = fs::metadata(&full).expect("a device").file_type();
        assert!(kind.is_char_device());
    }

    #[test]
    fn what_can_not_be_written_is_known_beforehand() {
        let folder = folder();
        let file = folder.path().join("file");
        fs::write(&file, "").expect("written");
        for bad in ["no/such/file", "", "file/below"] {
            assert!(check(&folder.path().join(bad)).is_err(), "{bad}");
        }
        check(&file).expect("it is there");
        check(&folder.path().join("new")).expect("it can be made");
        check_directory(&folder.path().join("new/and/deeper")).expect("it can be made");
        assert!(check_directory(&file.join("below")).is_err());
        assert!(check_directory(&file).is_err());
        let no_file = Path::new("/proc/no-file-of-ours");
        assert!(check(no_file).is_err() && check_directory(no_file).is_err());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
