//! Numbers and fields of tracepoints, from tracefs.

use super::format::Field;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// Where tracefs usually is, if mounted and readable.
const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const FSCONFIG_CMD_CREATE: i32 = 6;
const CLOEXEC: i32 = 1;

/// The root directory of tracefs.
#[derive(Debug)]
pub(crate) struct Tracefs(OwnedFd);

impl Tracefs {
    /// Opens the mounted tracefs, or else mounts one detached: it appears nowhere in the tree and
    /// goes with its descriptor.
    pub fn open() -> io::Result<Tracefs> {
        let mounted = MOUNTED
            .iter()
            .map(Path::new)
            .find(|path| path.join("events").is_dir());
        match mounted {
            Some(path) => Ok(Tracefs(File::open(path)?.into())),
            None => detached(),
        }
    }

    /// The text of the file `path` below the root.
    fn read(&self, path: &str) -> io::Result<String> {
        let path = std::ffi::CString::new(path)?;
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        // SAFETY: the descriptor is open as long as `self` lives, and `path` is a C string.
        let fd = owned(unsafe { libc::openat(self.0.as_raw_fd(), path.as_ptr(), flags) }.into())?;
        let mut text = String::new();
        File::from(fd).read_to_string(&mut text)?;
        Ok(text)
    }

    /// The number of the tracepoint `event`.
    pub fn number(&self, event: &str) -> io::Result<u64> {
        let text = self.read(&format!("events/{event}/id"))?;
        text.trim().parse().map_err(io::Error::other)
    }

    /// The field `name` of the tracepoint `event`.
    pub fn field(&self, event: &str, name: &str) -> io::Result<Field> {
        let format = self.read(&format!("events/{event}/format"))?;
        let missing = || io::Error::other(format!("{event} has no field {name}"));
        Field::find(&format, name).ok_or_else(missing)
    }
}

/// The tracepoints in use, on the running kernel.
#[derive(Debug)]
pub(crate) struct Tracepoints {
    pub switch: u64,
    pub state: Field,
    /// Those of lock contention, since Linux 5.19.
    pub contention: io::Result<Contention>,
}

/// The tracepoints of lock contention.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contention {
    pub begin: u64,
    pub end: u64,
    pub fields: ContentionFields,
}

/// The tracepoints of `mmap_lock`, since Linux 5.11.
#[derive(Clone, Debug)]
pub(crate) struct HoldTracepoints {
    pub acquired: u64,
    pub released: u64,
    pub fields: HoldFields,
}

/// The tracepoint of a thread that wakes another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakeTracepoint {
    pub number: u64,
    /// The thread that is woken, by its number in the first PID namespace.
    pub woken: Field,
}

/// The fields that are read from them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldFields {
    pub acquired_space: Field,
    pub write: Field,
    pub success: Field,
    pub released_space: Field,
}

/// The fields that are read from them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ContentionFields {
    pub begin_lock: Field,
    pub begin_flags: Field,
    pub end_lock: Field,
}

impl Tracepoints {
    /// Looks up numbers and fields.
    pub fn find(tracefs: &Tracefs) -> io::Result<Tracepoints> {
        const SWITCH: &str = "sched/sched_switch";
        Ok(Tracepoints {
            switch: tracefs.number(SWITCH)?,
            state: tracefs.field(SWITCH, "prev_state")?,
            contention: Contention::find(tracefs),
        })
    }
}

impl Contention {
    fn find(tracefs: &Tracefs) -> io::Result<Contention> {
        const BEGIN: &str = "lock/contention_begin";
        const END: &str = "lock/contention_end";
        Ok(Contention {
            begin: tracefs.number(BEGIN)?,
            end: tracefs.number(END)?,
            fields: ContentionFields {
                begin_lock: tracefs.field(BEGIN, "lock_addr")?,
                begin_flags: tracefs.field(BEGIN, "flags")?,
                end_lock: tracefs.field(END, "lock_addr")?,
            },
        })
    }
}

impl WakeTracepoint {
    /// Looks up number and field.
    ///
    /// # Errors
    /// Fails in other PID namespaces too, where threads have other numbers.
    pub fn find(tracefs: &Tracefs) -> io::Result<WakeTracepoint> {
        const WAKING: &str = "sched/sched_waking";
        has_first_numbers()?;
        Ok(WakeTracepoint {
            number: tracefs.number(WAKING)?,
            woken: tracefs.field(WAKING, "pid")?,
        })
    }
}

impl HoldTracepoints {
    /// Looks up numbers and fields.
    pub fn find(tracefs: &Tracefs) -> io::Result<HoldTracepoints> {
        const ACQUIRED: &str = "mmap_lock/mmap_lock_acquire_returned";
        const RELEASED: &str = "mmap_lock/mmap_lock_released";
        Ok(HoldTracepoints {
            acquired: tracefs.number(ACQUIRED)?,
            released: tracefs.number(RELEASED)?,
            fields: HoldFields {
                acquired_space: tracefs.field(ACQUIRED, "mm")?,
                write: tracefs.field(ACQUIRED, "write")?,
                success: tracefs.field(ACQUIRED, "success")?,
                released_space: tracefs.field(RELEASED, "mm")?,
            },
        })
    }
}

/// Fails in other PID namespaces than the first, whose numbers tracepoints have.
pub(crate) fn has_first_numbers() -> io::Result<()> {
    /// `PROC_PID_INIT_INO`.
    const FIRST: &str = "pid:[4026531836]";
    match std::fs::read_link("/proc/self/ns/pid")?.as_os_str() == FIRST {
        true => Ok(()),
        false => Err(io::Error::other("this is not the first PID namespace")),
    }
}

fn detached() -> io::Result<Tracefs> {
    const NAME: &CStr = c"tracefs";
    let none = std::ptr::null::<u8>();
    // SAFETY: `NAME` is a C string; the other arguments are numbers.
    let opened = unsafe { libc::syscall(libc::SYS_fsopen, NAME.as_ptr(), CLOEXEC) };
    let context = owned(opened)?;
    let fd = context.as_raw_fd();
    // SAFETY: this command takes neither key nor value, so null is right for both.
    let made = unsafe { libc::syscall(libc::SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, none, none, 0) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is this process's and open; the other arguments are numbers.
    owned(unsafe { libc::syscall(libc::SYS_fsmount, fd, CLOEXEC, 0) }).map(Tracefs)
}

/// The new descriptor that a system call returned.
fn owned(result: i64) -> io::Result<OwnedFd> {
    match i32::try_from(result) {
        // SAFETY: the kernel has just returned this descriptor, so nothing else owns it.
        Ok(fd @ 0..) => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The format of 5.15, which has the path of a control group as a string.
    const ACQUIRED: &str = "name: mmap_lock_acquire_returned\nformat:\n\
        \tfield:struct mm_struct * mm;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:__data_loc char[] memcg_path;\toffset:16;\tsize:4;\tsigned:1;\n\
        \tfield:bool write;\toffset:20;\tsize:1;\tsigned:0;\n\
        \tfield:bool success;\toffset:21;\tsize:1;\tsigned:0;\n";

    #[test]
    fn holds_have_the_layout_of_the_kernel_or_none() {
        let name = format!("scalevm-tracefs-{}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let write = |event: &str, format: &str| {
            let folder = root.join("events/mmap_lock").join(event);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join("id"), "675\n").expect("written");
            fs::write(folder.join("format"), format).expect("written");
        };
        write("mmap_lock_acquire_returned", ACQUIRED);
        let open = || Tracefs(File::open(&root).expect("a folder").into());
        let missing = HoldTracepoints::find(&open());
        write("mmap_lock_released", ACQUIRED);
        let found = HoldTracepoints::find(&open()).expect("both");
        fs::remove_dir_all(&root).expect("removed");
        assert!(missing.is_err(), "a kernel before 5.11");
        let mut raw = [0_u8; 22];
        raw[8] = 7;
        raw[21] = 1;
        let HoldFields {
            acquired_space,
            write,
            success,
            released_space,
        } = found.fields;
        let read = [acquired_space, write, success, released_space].map(|field| field.read(&raw));
        assert_eq!((found.acquired, found.released), (675, 675));
        assert_eq!(read, [Some(7), Some(0), Some(1), Some(7)]);
    }
}
