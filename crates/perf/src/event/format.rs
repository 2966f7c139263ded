//! A tracepoint's fields, from its `format` file.

/// A number in a tracepoint's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    offset: usize,
    size: usize,
    signed: bool,
}

impl Field {
    /// The field called `name` of a `format` file; none if it is missing or not a number.
    pub fn find(format: &str, name: &str) -> Option<Field> {
        format.lines().find_map(|line| {
            let (declaration, rest) = line.trim().strip_prefix("field:")?.split_once(';')?;
            // An array (`comm[16]`) keeps its brackets, so it is not found.
            let found = declaration.split([' ', '*']).next_back()?;
            let field = Field {
                offset: number(rest, "offset:")?,
                size: number(rest, "size:")?,
                signed: number(rest, "signed:")? == 1,
            };
            (found == name && matches!(field.size, 1 | 2 | 4 | 8)).then_some(field)
        })
    }

    /// Its value in a record; none if the record is too short.
    pub fn read(self, raw: &[u8]) -> Option<i64> {
        let bytes = raw.get(self.offset..self.offset + self.size)?;
        let mut word = [0; 8];
        word[..self.size].copy_from_slice(bytes);
        // Shifts to the top and back, which extends the sign.
        let up = u64::from_ne_bytes(word) << (64 - 8 * self.size);
        let down = 64 - 8 * self.size as u32;
        Some(if self.signed {
            up as i64 >> down
        } else {
            (up >> down) as i64
        })
    }
}

fn number(text: &str, key: &str) -> Option<usize> {
    let (_, value) = text.split_once(key)?;
    value.split(';').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: x\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;\n\
        \tfield:char prev_comm[16];\toffset:20;\tsize:16;\tsigned:0;\n\
        \tfield:int ret;\toffset:36;\tsize:4;\tsigned:1;\n";

    #[test]
    fn fields_are_where_the_format_says() {
        let mut raw = [0_u8; 40];
        raw[8..16].copy_from_slice(&0xffff_8880_1234_5678_u64.to_ne_bytes());
        raw[16..20].copy_from_slice(&34_u32.to_ne_bytes());
        raw[36..].copy_from_slice(&(-4_i32).to_ne_bytes());
        let read = |name| Field::find(FORMAT, name).and_then(|field| field.read(&raw));
        assert_eq!(read("lock_addr"), Some(0xffff_8880_1234_5678_u64 as i64));
        assert_eq!(read("flags"), Some(34));
        assert_eq!(read("ret"), Some(-4));
    }

    #[test]
    fn what_is_not_there_is_none() {
        assert_eq!(Field::find(FORMAT, "addr"), None);
        assert_eq!(Field::find(FORMAT, "prev_comm"), None);
        let flags = Field::find(FORMAT, "flags").expect("a field");
        assert_eq!(flags.read(&[0; 18]), None);
    }
}
