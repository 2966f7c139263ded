//! Text of others, made fit for a terminal, a picture or a page.

use std::borrow::Cow;

/// `text` with each character that acts instead of being seen as an escape, such as `\u001b`:
/// controls other than the end of a line and the tab, those that turn the direction of writing, and
/// what XML does not allow. The escapes are JSON's, so a line of JSON stays one.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if acts(letter) {
            shown += &format!("\\u{:04x}", u32::from(letter))
        } else {
            shown.push(letter)
        }
    }
    shown.into()
}

fn acts(letter: char) -> bool {
    match letter {
        '\n' | '\t' => false,
        '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        '\u{fffe}' | '\u{ffff}' => true,
        letter => letter.is_control(),
    }
}

/// `text` if it has at most `most` letters; otherwise its beginning and its end, with `…` for what
/// is left out.
pub fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= most {
        return text.into();
    }
    let kept = most.saturating_sub(1);
    let (head, tail) = (kept - kept / 4, kept / 4);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}…{end}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown_and_the_rest_stays() {
        for (text, shown) in [
            ("plain é漢🙂 \t\n", "plain é漢🙂 \t\n"),
            ("\x1b[31mred\x07", "\\u001b[31mred\\u0007"),
            ("a\rb\u{9b}c\0", "a\\u000db\\u009bc\\u0000"),
            ("x\u{202e}y\u{2028}z\u{ffff}", "x\\u202ey\\u2028z\\uffff"),
        ] {
            assert_eq!(printable(text), shown);
        }
        let json = serde_json::json!({ "name": "a\u{7f}\u{85}\u{202e}" }).to_string();
        let read: serde_json::Value = serde_json::from_str(&printable(&json)).unwrap();
        assert_eq!(read["name"], "a\u{7f}\u{85}\u{202e}");
    }

    #[test]
    fn what_is_cut_has_a_mark() {
        assert_eq!(shortened("漢字", 2), "漢字");
        assert_eq!(shortened("0123456789", 9), "012345…89");
        assert_eq!(shortened(&"x".repeat(3000), 100).chars().count(), 100);
    }
}
