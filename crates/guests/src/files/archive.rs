//! Files as an archive that a kernel unpacks: cpio's "newc".

use super::{Entry, Files};
use crate::Error;
use cpio::newc::{Builder, trailer};
use std::fs;
use std::io::{self, Write};

const FOLDER: u32 = 0o040_755;
const LINK: u32 = 0o120_777;
const DEVICE: u32 = 0o020_666;
const FILE: u32 = 0o100_000;
const TEXT: u32 = FILE | 0o644;

impl Files {
    /// Writes the archive, folders before their contents.
    ///
    /// # Errors
    /// Fails if a file cannot be read or is too large for the format, or the archive cannot be
    /// written.
    pub(crate) fn pack(&self, mut out: impl Write, archive: &std::path::Path) -> Result<(), Error> {
        for ((path, entry), number) in self.entries.iter().zip(1..) {
            let builder = Builder::new(path).ino(number).nlink(1);
            let (builder, content) = match entry {
                Entry::Folder => (builder.mode(FOLDER).nlink(2), Vec::new()),
                Entry::Link(target) => (builder.mode(LINK), target.clone().into_bytes()),
                Entry::Text(text) => (builder.mode(TEXT), text.clone()),
                Entry::Device(major, minor) => {
                    let device = builder.mode(DEVICE).rdev_major(*major);
                    (device.rdev_minor(*minor), Vec::new())
                }
                Entry::Copy { from, mode } => {
                    let content = fs::read(from).map_err(Error::at(from))?;
                    (builder.mode(FILE | mode), content)
                }
            };
            append(builder, &content, &mut out).map_err(Error::at(archive))?;
        }
        let end = trailer(&mut out).and_then(|out| out.flush());
        end.map_err(Error::at(archive))
    }
}

fn append(builder: Builder, content: &[u8], out: &mut impl Write) -> io::Result<()> {
    let size = u32::try_from(content.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut writer = builder.write(out, size);
    writer.write_all(content)?;
    writer.finish().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cpio::newc::Reader;
    use std::io::Read;
    use std::path::Path;

    #[test]
    fn an_archive_has_what_was_put_in() {
        let mut files = Files::bare();
        files.write("etc/motd", "hello");
        files.link("bin/sh", "busybox");
        let mut archive = Vec::new();
        files.pack(&mut archive, Path::new("-")).expect("packed");
        let mut rest = &archive[..];
        let mut seen = Vec::new();
        loop {
            let mut reader = Reader::new(rest).expect("an entry");
            let entry = reader.entry().clone_shape();
            let mut content = String::new();
            reader.read_to_string(&mut content).expect("text");
            rest = reader.finish().expect("an end");
            if entry.0 == "TRAILER!!!" {
                break;
            }
            seen.push((entry, content));
        }
        let find = |name: &str| seen.iter().find(|((path, ..), _)| path == name).cloned();
        let text = |(name, mode, device): (&str, u32, (u32, u32)), content: &str| {
            Some(((name.to_owned(), mode, device), content.to_owned()))
        };
        assert_eq!(
            find("etc/motd"),
            text(("etc/motd", 0o100_644, (0, 0)), "hello")
        );
        assert_eq!(
            find("bin/sh"),
            text(("bin/sh", 0o120_777, (0, 0)), "busybox")
        );
        let console = ("dev/console", 0o020_666, (5, 1));
        assert_eq!(find("dev/console"), text(console, ""));
        let place = |name: &str| seen.iter().position(|((path, ..), _)| path == name);
        assert!(place("etc") < place("etc/motd"), "folders come first");
    }

    trait Shape {
        fn clone_shape(&self) -> (String, u32, (u32, u32));
    }

    impl Shape for cpio::newc::Entry {
        fn clone_shape(&self) -> (String, u32, (u32, u32)) {
            let device = (self.rdev_major(), self.rdev_minor());
            (self.name().to_owned(), self.mode(), device)
        }
    }
}
