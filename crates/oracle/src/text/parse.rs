//! Parses steps.

use crate::address::{Address, Handle, Origin, PAGE, Range};
use crate::flags::{Flag, Flags};
use crate::step::{
    Advice, Backing, Call, FILE_BYTES, FILES, Map, MapFlag, PROCESSES, Prot, Remap, Scarcity, Step,
    TRANSFER, Transfer, Where, Width,
};
use std::str::FromStr;

/// An invalid line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct ParseError {
    /// The line's number, from 1.
    pub line: usize,
    /// The error.
    pub why: String,
}

type Parsed<T> = Result<T, String>;

impl FromStr for Step {
    type Err = String;

    fn from_str(text: &str) -> Parsed<Step> {
        let (process, call) = text.split_once(':').ok_or("`PROCESS:` is missing")?;
        let mut words = Words(call.split_whitespace().collect());
        let step = Step {
            process: process_id(process.trim())?,
            call: words.call()?,
        };
        match words.0.first() {
            None => Ok(step),
            Some(word) => Err(format!("`{word}` is unexpected")),
        }
    }
}

/// The rest of a line.
struct Words<'a>(Vec<&'a str>);

impl<'a> Words<'a> {
    fn next(&mut self, what: &str) -> Parsed<&'a str> {
        if self.0.is_empty() {
            Err(format!("{what} is missing"))
        } else {
            Ok(self.0.remove(0))
        }
    }

    /// Consumes the next word if it is `word`. Returns true if it was.
    fn take(&mut self, word: &str) -> bool {
        let here = self.0.first() == Some(&word);
        if here {
            self.0.remove(0);
        }
        here
    }

    fn call(&mut self) -> Parsed<Call> {
        Ok(match self.next("the call")? {
            "map" => Call::Map(self.map()?),
            "unmap" => Call::Unmap(self.range()?),
            "protect" => Call::Protect(self.range()?, self.prot()?),
            "remap" => Call::Remap(self.remap()?),
            "advise" => Call::Advise(self.range()?, self.advice()?),
            "sync" => Call::Sync(self.range()?, self.flags()),
            "lock" => Call::Lock(self.range()?),
            "lock-on-fault" => Call::LockOnFault(self.range()?),
            "unlock" => Call::Unlock(self.range()?),
            "lock-all" => Call::LockAll(self.flags()),
            "unlock-all" => Call::UnlockAll,
            "in-core" => Call::InCore(self.range()?),
            "break" => Call::Break(self.length()?),
            "fork" => Call::Fork(process_id(self.next("the child")?)?),
            "exit" => Call::Exit,
            "replace" => Call::Replace,
            "load" => {
                let width = self.width()?;
                Call::Load(self.accessed(width)?, width)
            }
            "store" => {
                let width = self.width()?;
                Call::Store(self.accessed(width)?, width, self.number()?)
            }
            "truncate" => Call::Truncate(self.file()?, self.file_bytes()?),
            "read" => Call::Read(self.transfer()?),
            "write" => {
                let transfer = self.transfer()?;
                let byte = u8::try_from(self.number()?);
                Call::Write(transfer, byte.map_err(|_| "a byte must be at most 0xff")?)
            }
            "regions" => Call::Regions(self.range()?),
            "dump" => Call::Dump(self.range()?),
            "scarce" => Call::Scarce(self.scarcity()?),
            word => return Err(format!("`{word}` is not a call")),
        })
    }

    fn map(&mut self) -> Parsed<Map> {
        let manner = self.next("fixed, fixed-noreplace, hint or anywhere")?;
        let address = match manner {
            "anywhere" => None,
            "fixed" | "fixed-noreplace" | "hint" => Some(self.address()?),
            word => return Err(format!("`{word}` does not say where to map")),
        };
        let bytes = self.length()?;
        let prot = self.prot()?;
        let shared = match self.next("private or shared")? {
            "private" => false,
            "shared" => true,
            word => return Err(format!("`{word}` is neither private nor shared")),
        };
        let backing = self.backing()?;
        let flags: Flags<MapFlag> = self.flags();
        let at = match (manner, address) {
            ("fixed", Some(at)) => Where::Fixed(at),
            ("fixed-noreplace", Some(at)) => Where::FixedNoReplace(at),
            (_, Some(at)) => Where::Hint(at, self.handle()?.ok_or(NO_HANDLE)?),
            (_, None) => Where::Anywhere(self.handle()?.ok_or(NO_HANDLE)?),
        };
        Ok(Map {
            at,
            bytes,
            prot,
            shared,
            backing,
            flags,
        })
    }

    fn backing(&mut self) -> Parsed<Backing> {
        match self.next("anonymous or file")? {
            "anonymous" => Ok(Backing::Anonymous),
            "file" => Ok(Backing::File {
                file: self.file()?,
                offset: self.offset()?,
                read_only: self.take("readonly"),
            }),
            word => Err(format!("`{word}` is neither anonymous nor file")),
        }
    }

    fn remap(&mut self) -> Parsed<Remap> {
        Ok(Remap {
            old: self.range()?,
            bytes: self.length()?,
            fixed: if self.take("fixed") {
                Some(self.address()?)
            } else {
                None
            },
            flags: self.flags(),
            handle: self.handle()?,
        })
    }

    fn scarcity(&mut self) -> Parsed<Scarcity> {
        let of = self.next("left, frame, file or swap")?;
        let number = self.number()?;
        match of {
            "left" => Ok(Scarcity::Left(number)),
            "frame" => Ok(Scarcity::Frame(number)),
            "file" => Ok(Scarcity::File(number)),
            "swap" => Ok(Scarcity::Swap(number)),
            word => Err(format!("`{word}` cannot be scarce")),
        }
    }

    fn transfer(&mut self) -> Parsed<Transfer> {
        let transfer = Transfer {
            file: self.file()?,
            offset: self.offset()?,
            bytes: self.length()?,
        };
        let end = transfer.offset.checked_add(transfer.bytes);
        if transfer.bytes <= TRANSFER && end.is_some_and(|end| end <= FILE_BYTES) {
            Ok(transfer)
        } else {
            Err(format!(
                "a transfer has at most {TRANSFER} bytes, a file {FILE_BYTES}"
            ))
        }
    }

    fn range(&mut self) -> Parsed<Range> {
        Ok(Range {
            start: self.address()?,
            bytes: self.length()?,
        })
    }

    fn address(&mut self) -> Parsed<Address> {
        let word = self.next("the address")?;
        address(word).ok_or_else(|| format!("`{word}` is not an address"))
    }

    /// Checks that words are aligned.
    fn accessed(&mut self, width: Width) -> Parsed<Address> {
        let address = self.address()?;
        if address.offset.is_multiple_of(width.bytes()) {
            Ok(address)
        } else {
            Err(format!("{address} is not aligned to a word"))
        }
    }

    fn length(&mut self) -> Parsed<u64> {
        let word = self.next("the length")?;
        length(word).ok_or_else(|| format!("`{word}` is not a length"))
    }

    fn file_bytes(&mut self) -> Parsed<u64> {
        match self.length()? {
            bytes if bytes <= FILE_BYTES => Ok(bytes),
            _ => Err(format!("a file has at most {FILE_BYTES} bytes")),
        }
    }

    fn offset(&mut self) -> Parsed<u64> {
        let word = self.next("@OFFSET")?;
        let offset = word.strip_prefix('@').and_then(length);
        offset.ok_or_else(|| format!("`{word}` is not an offset"))
    }

    fn number(&mut self) -> Parsed<u64> {
        let word = self.next("a number")?;
        number(word).ok_or_else(|| format!("`{word}` is not a number"))
    }

    fn file(&mut self) -> Parsed<u8> {
        let word = self.next("the file")?;
        let file = word.parse().ok().filter(|&file| file < FILES);
        file.ok_or_else(|| format!("`{word}` is not a file: they are 0 to {}", FILES - 1))
    }

    fn width(&mut self) -> Parsed<Width> {
        match self.next("byte or word")? {
            "byte" => Ok(Width::Byte),
            "word" => Ok(Width::Word),
            word => Err(format!("`{word}` is neither byte nor word")),
        }
    }

    fn prot(&mut self) -> Parsed<Prot> {
        let word = self.next("the rights")?;
        let letters: Vec<char> = word.chars().collect();
        match letters[..] {
            [r @ ('r' | '-'), w @ ('w' | '-'), x @ ('x' | '-')] => {
                Ok(Prot::new(r == 'r', w == 'w', x == 'x'))
            }
            _ => Err(format!("`{word}` is not a set of rights such as rw-")),
        }
    }

    fn advice(&mut self) -> Parsed<Advice> {
        let word = self.next("the advice")?;
        let found = Advice::ALL.iter().find(|(_, name)| *name == word);
        found.map_or_else(
            || Err(format!("`{word}` is unknown advice")),
            |one| Ok(one.0),
        )
    }

    fn flags<F: Flag>(&mut self) -> Flags<F> {
        let mut flags = Flags::NONE;
        while let Some(flag) = self.0.first().and_then(|word| Flags::named(word)) {
            flags = flags.with(flag);
            self.0.remove(0);
        }
        flags
    }

    /// `as h1`, if present.
    fn handle(&mut self) -> Parsed<Option<Handle>> {
        if !self.take("as") {
            return Ok(None);
        }
        let word = self.next("the handle")?;
        let handle = word
            .strip_prefix('h')
            .and_then(|digits| digits.parse().ok());
        handle.map_or_else(
            || Err(format!("`{word}` is not a handle")),
            |one| Ok(Some(one)),
        )
    }
}

const NO_HANDLE: &str = "`as hN` is missing";

fn process_id(word: &str) -> Parsed<u8> {
    let process = word.parse().ok().filter(|&process| process < PROCESSES);
    process.ok_or_else(|| format!("`{word}` is not a process: they are 0 to {}", PROCESSES - 1))
}

fn address(word: &str) -> Option<Address> {
    if word.starts_with("0x") {
        let offset = number(word)?;
        let place = Origin::Absolute;
        return Some(Address { place, offset });
    }
    let (page, byte) = match word.split_once('+') {
        Some((page, byte)) => (page, number(byte).filter(|&byte| byte < PAGE)?),
        None => (word, 0),
    };
    let letter = page.chars().next()?;
    let rest = &page[letter.len_utf8()..];
    let (place, page) = match letter {
        'w' => (Origin::Window, rest),
        'b' => (Origin::Heap, rest),
        'h' => {
            let (handle, page) = rest.split_once(':')?;
            (Origin::Handle(handle.parse().ok()?), page)
        }
        _ => return None,
    };
    let offset = number(page)?.checked_mul(PAGE)?.checked_add(byte)?;
    Some(Address { place, offset })
}

fn length(word: &str) -> Option<u64> {
    match word.strip_suffix('p') {
        Some(pages) => number(pages)?.checked_mul(PAGE),
        None => number(word),
    }
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}
