//! Values as bytes. Each value of the format is described once, by a function over a [`Wire`]: one
//! wire writes the value that it is given, the other reads one into its place.

use std::fmt::Display;

/// Why bytes have no meaning.
pub type Flaw = String;

/// One direction of the format.
pub trait Wire {
    /// A byte.
    fn byte(&mut self, value: &mut u8) -> Result<(), Flaw>;

    /// The bytes of a text, after their number.
    fn text(&mut self, value: &mut String) -> Result<(), Flaw>;

    /// A number: seven bits a byte, the lowest first; the top bit says that more follow.
    fn number(&mut self, value: &mut u64) -> Result<(), Flaw>;

    /// A number of a smaller type.
    fn small<T>(&mut self, value: &mut T) -> Result<(), Flaw>
    where
        T: Copy + Into<u64> + TryFrom<u64>,
    {
        let mut wide = (*value).into();
        self.number(&mut wide)?;
        *value = narrow(wide)?;
        Ok(())
    }

    /// A number by its difference from `expected`.
    fn near(&mut self, value: &mut u64, expected: u64) -> Result<(), Flaw> {
        let mut coded = zigzag(value.wrapping_sub(expected));
        self.number(&mut coded)?;
        *value = expected.wrapping_add(unzigzag(coded));
        Ok(())
    }

    /// A smaller number by its difference from `expected`.
    fn small_near(&mut self, value: &mut u32, expected: u32) -> Result<(), Flaw> {
        let mut wide = u64::from(*value);
        self.near(&mut wide, expected.into())?;
        *value = narrow(wide)?;
        Ok(())
    }

    /// A number that is at least `base`.
    fn at_least(&mut self, value: &mut u64, base: u64) -> Result<(), Flaw> {
        let mut beyond = value.saturating_sub(base);
        self.number(&mut beyond)?;
        *value = base.checked_add(beyond).ok_or("a time overflows")?;
        Ok(())
    }

    /// Bytes of memory, by the difference from `expected` in pages: 1 and more. 0 says that they
    /// are no whole pages, and the difference in bytes follows.
    fn size(&mut self, value: &mut u64, expected: u64, page: u64) -> Result<(), Flaw> {
        let pages = expected / page;
        let mut coded = match *value % page {
            0 => zigzag((*value / page).wrapping_sub(pages)) + 1,
            _ => 0,
        };
        self.number(&mut coded)?;
        if coded == 0 {
            return self.near(value, expected);
        }
        let found = pages.wrapping_add(unzigzag(coded - 1));
        *value = found.checked_mul(page).ok_or("a size overflows")?;
        Ok(())
    }

    /// One of `all`, by its index.
    fn one_of<T: Copy + PartialEq>(&mut self, value: &mut T, all: &[T]) -> Result<(), Flaw> {
        let index = all.iter().position(|one| one == value);
        // All values are among `all`; only what is read may not be.
        let mut index = index.unwrap_or(all.len()) as u64;
        self.number(&mut index)?;
        let found = usize::try_from(index).ok().and_then(|index| all.get(index));
        *value = *found.ok_or_else(|| format!("a choice is {index} of {}", all.len()))?;
        Ok(())
    }

    /// Flags as one number, the first as its lowest bit.
    fn flags<const N: usize>(&mut self, flags: [&mut bool; N]) -> Result<(), Flaw> {
        let bits = flags.iter().zip(0..);
        let mut coded = bits.fold(0, |sum, (flag, bit)| sum | u64::from(**flag) << bit);
        self.number(&mut coded)?;
        if coded >> N != 0 {
            return Err(format!("flags are {coded:#x}, and {N} bits are known"));
        }
        for (flag, bit) in flags.into_iter().zip(0..) {
            *flag = coded >> bit & 1 == 1;
        }
        Ok(())
    }

    /// The number of `list`'s elements, and each by `inner`. The list grows as elements are read,
    /// so that a number that lies takes no memory.
    fn each<T: Default>(
        &mut self,
        list: &mut Vec<T>,
        mut inner: impl FnMut(&mut Self, &mut T) -> Result<(), Flaw>,
    ) -> Result<(), Flaw> {
        let mut count = list.len() as u64;
        self.number(&mut count)?;
        for index in 0..narrow(count)? {
            if index == list.len() {
                list.push(T::default());
            }
            inner(self, &mut list[index])?;
        }
        Ok(())
    }
}

/// Writes.
#[derive(Default)]
pub struct Output(pub Vec<u8>);

impl Wire for Output {
    fn byte(&mut self, value: &mut u8) -> Result<(), Flaw> {
        self.0.push(*value);
        Ok(())
    }

    fn number(&mut self, value: &mut u64) -> Result<(), Flaw> {
        let mut rest = *value;
        while rest >= 0x80 {
            self.0.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.0.push(rest as u8);
        Ok(())
    }

    fn text(&mut self, value: &mut String) -> Result<(), Flaw> {
        self.number(&mut (value.len() as u64))?;
        self.0.extend_from_slice(value.as_bytes());
        Ok(())
    }
}

/// Reads.
pub struct Input<'a> {
    pub bytes: &'a [u8],
    /// The next byte.
    pub at: usize,
}

impl Input<'_> {
    fn take(&mut self) -> Result<u8, Flaw> {
        let byte = self.bytes.get(self.at).ok_or("the block ends in it")?;
        self.at += 1;
        Ok(*byte)
    }
}

impl Wire for Input<'_> {
    fn byte(&mut self, value: &mut u8) -> Result<(), Flaw> {
        *value = self.take()?;
        Ok(())
    }

    fn number(&mut self, value: &mut u64) -> Result<(), Flaw> {
        *value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            *value |= bits << shift;
            if byte < 0x80 {
                return Ok(());
            }
        }
        Err("a number has more than 64 bits".into())
    }

    fn text(&mut self, value: &mut String) -> Result<(), Flaw> {
        let mut length = 0;
        self.number(&mut length)?;
        let rest = &self.bytes[self.at..];
        let length: usize = narrow(length)?;
        let bytes = rest.get(..length).ok_or("the block ends in a text")?;
        *value = String::from_utf8(bytes.to_vec()).map_err(|_| "a text is not UTF-8")?;
        self.at += length;
        Ok(())
    }
}

fn narrow<F: Copy + Display, T: TryFrom<F>>(value: F) -> Result<T, Flaw> {
    T::try_from(value).map_err(|_| format!("a number is {value}, which is too large"))
}

/// What an option holds if `is_some`, to be written or filled.
pub fn held<T: Default>(value: &mut Option<T>, is_some: bool) -> Option<&mut T> {
    is_some.then(|| value.get_or_insert_default())
}

/// Small numbers of either sign as small ones without.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

fn unzigzag(coded: u64) -> u64 {
    (coded >> 1) ^ (coded & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes `value` and reads it back by the same function.
    fn round<T: Clone + Default>(
        value: &T,
        write: impl Fn(&mut Output, &mut T) -> Result<(), Flaw>,
        read: impl Fn(&mut Input<'_>, &mut T) -> Result<(), Flaw>,
    ) -> T {
        let mut output = Output::default();
        write(&mut output, &mut value.clone()).expect("it can be written");
        let bytes = &output.0;
        let (mut input, mut found) = (Input { bytes, at: 0 }, T::default());
        read(&mut input, &mut found).expect("it can be read");
        assert_eq!(input.at, bytes.len());
        found
    }

    proptest! {
        #[test]
        fn numbers_come_back(value: u64, expected: u64, shift in 0..64_u32) {
            let (value, expected) = (value >> shift, expected >> (shift / 2));
            let plain = round(
                &value,
                |wire, value| wire.number(value),
                |wire, value| wire.number(value),
            );
            prop_assert_eq!(value, plain);
            let near = round(
                &value,
                |wire, value| wire.near(value, expected),
                |wire, value| wire.near(value, expected),
            );
            prop_assert_eq!(value, near);
            for page in [512, 4096, 1 << 30] {
                for value in [value, value - value % page] {
                    let size = round(
                        &value,
                        |wire, value| wire.size(value, expected, page),
                        |wire, value| wire.size(value, expected, page),
                    );
                    prop_assert_eq!(value, size);
                }
            }
        }
    }

    #[test]
    fn numbers_are_short_where_they_are_small() {
        let length = |write: &dyn Fn(&mut Output) -> Result<(), Flaw>| {
            let mut output = Output::default();
            write(&mut output).expect("it can be written");
            output.0.len()
        };
        assert_eq!(length(&|wire| wire.number(&mut 127)), 1);
        assert_eq!(length(&|wire| wire.number(&mut 128)), 2);
        assert_eq!(length(&|wire| wire.number(&mut u64::MAX.clone())), 10);
        assert_eq!(length(&|wire| wire.near(&mut 1000, 1063)), 1);
        assert_eq!(length(&|wire| wire.size(&mut (60 << 12), 0, 4096)), 1);
    }

    #[test]
    fn bytes_without_meaning_are_refused() {
        let number = |bytes: &[u8]| Input { bytes, at: 0 }.number(&mut 0);
        assert_eq!(number(&[0x80]), Err("the block ends in it".into()));
        let long = Err("a number has more than 64 bits".into());
        assert_eq!(number(&[0xff; 11]), long);
        // The tenth byte has room for one bit.
        assert_eq!(number(b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), long);
        let text = |bytes: &[u8]| Input { bytes, at: 0 }.text(&mut String::new());
        assert_eq!(text(b"\x02a"), Err("the block ends in a text".into()));
        assert_eq!(text(b"\x01\xff"), Err("a text is not UTF-8".into()));
        let flags = Input { bytes: &[2], at: 0 }.flags([&mut false]);
        assert_eq!(flags, Err("flags are 0x2, and 1 bits are known".into()));
        let size = Input { bytes: &[3], at: 0 }.size(&mut 0, u64::MAX, 512);
        assert_eq!(size, Err("a size overflows".into()));
    }
}
