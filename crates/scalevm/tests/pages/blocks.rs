//! The marked places of a page.

/// How a mark begins.
const MARKS: [(&str, bool); 2] = [("<!-- of: ", false), ("<!-- full: ", true)];
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// A marked place.
#[derive(Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// True if it is for a full run only.
    pub is_full: bool,
    /// The command to run.
    pub command: &'a str,
    /// The renderer of its output.
    pub renderer: &'a str,
    /// The present content.
    pub content: &'a str,
}

/// The page with `content` applied to each block.
pub fn rewritten(
    page: &str,
    mut content: impl FnMut(&Block) -> Result<String, String>,
) -> Result<String, String> {
    let (mut new, mut rest) = (String::new(), page);
    while let Some((at, mark, is_full)) = first(rest) {
        let broken = |why: &str| {
            let line = 1 + page[..page.len() - rest.len() + at].matches('\n').count();
            format!("line {line}: {why}")
        };
        let (command, behind) = rest[at + mark.len()..]
            .split_once(CLOSE)
            .ok_or_else(|| broken("a mark without an end"))?;
        let (old, _) = behind
            .split_once(END)
            .ok_or_else(|| broken("a place without <!-- end -->"))?;
        if first(old).is_some() {
            return Err(broken("a place within a place"));
        }
        let begin = rest.len() - behind.len();
        let (command, renderer) = command.split_once(" | ").unwrap_or((command, "text"));
        let block = Block {
            is_full,
            command,
            renderer,
            content: old,
        };
        new.push_str(&rest[..begin]);
        new.push_str(&content(&block).map_err(|why| broken(&why))?);
        new.push_str(END);
        rest = &rest[begin + old.len() + END.len()..];
    }
    new.push_str(rest);
    Ok(new)
}

/// Where the first mark is.
fn first(text: &str) -> Option<(usize, &'static str, bool)> {
    let marks = MARKS.into_iter();
    let found = marks.filter_map(|(mark, is_full)| Some((text.find(mark)?, mark, is_full)));
    found.min_by_key(|&(at, ..)| at)
}

#[test]
fn what_is_between_marks_is_replaced_and_nothing_else() {
    let page = "a <!-- of: scalevm x | number n -->1<!-- end --> b\n<!-- full: scalevm \
                -->\nc\n<!-- end -->\n";
    let mut seen = Vec::new();
    let new = rewritten(page, |block| {
        let Block {
            is_full,
            command,
            renderer,
            content,
        } = *block;
        seen.push(format!("{is_full} {command} {renderer} {content}"));
        Ok(if is_full { "\nd\n".into() } else { "2".into() })
    });
    assert_eq!(
        seen,
        ["false scalevm x number n 1", "true scalevm text \nc\n"]
    );
    let expected = page.replace(">1<", ">2<").replace("\nc\n", "\nd\n");
    assert_eq!(new.as_deref(), Ok(&*expected));
}

#[test]
fn marks_that_are_broken_are_named_by_their_line() {
    for (page, why) in [
        ("\n<!-- of: scalevm", "line 2: a mark without an end"),
        (
            "<!-- of: scalevm --> 1",
            "line 1: a place without <!-- end -->",
        ),
        (
            "<!-- of: a -->\n<!-- of: b -->1<!-- end -->",
            "line 1: a place within a place",
        ),
    ] {
        let error = rewritten(page, |_| Ok(String::new())).expect_err(page);
        assert_eq!(error, why);
    }
}
