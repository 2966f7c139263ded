//! The marked places of a page.

const MARK: &str = "<!-- of: ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// A marked place.
#[derive(Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The command to run.
    pub command: &'a str,
    /// Where the number stands in its output.
    pub number: &'a str,
}

/// The page with `content` applied to each block.
pub fn rewritten(
    page: &str,
    mut content: impl FnMut(&Block) -> Result<String, String>,
) -> Result<String, String> {
    let (mut new, mut rest) = (String::new(), page);
    while let Some(at) = rest.find(MARK) {
        let broken = |why: &str| {
            let line = 1 + page[..page.len() - rest.len() + at].matches('\n').count();
            format!("line {line}: {why}")
        };
        let (command, behind) = rest[at + MARK.len()..]
            .split_once(CLOSE)
            .ok_or_else(|| broken("a mark without an end"))?;
        let (old, _) = behind
            .split_once(END)
            .ok_or_else(|| broken("a place without <!-- end -->"))?;
        if old.contains(MARK) {
            return Err(broken("a place within a place"));
        }
        let begin = rest.len() - behind.len();
        let (command, number) = command
            .split_once(" | ")
            .ok_or_else(|| broken("a command without a number"))?;
        let block = Block { command, number };
        new.push_str(&rest[..begin]);
        new.push_str(&content(&block).map_err(|why| broken(&why))?);
        new.push_str(END);
        rest = &rest[begin + old.len() + END.len()..];
    }
    new.push_str(rest);
    Ok(new)
}

#[test]
fn what_is_between_marks_is_replaced_and_nothing_else() {
    let page =
        "a <!-- of: scalevm x | n -->1<!-- end --> b\n<!-- of: scalevm y | m -->3<!-- end -->\n";
    let mut seen = Vec::new();
    let new = rewritten(page, |block| {
        seen.push(format!("{} {}", block.command, block.number));
        Ok("2".into())
    });
    assert_eq!(seen, ["scalevm x n", "scalevm y m"]);
    let expected = page.replace(">1<", ">2<").replace(">3<", ">2<");
    assert_eq!(new.as_deref(), Ok(&*expected));
}

#[test]
fn marks_that_are_broken_are_named_by_their_line() {
    for (page, why) in [
        ("\n<!-- of: scalevm", "line 2: a mark without an end"),
        (
            "<!-- of: scalevm | n --> 1",
            "line 1: a place without <!-- end -->",
        ),
        (
            "<!-- of: scalevm -->1<!-- end -->",
            "line 1: a command without a number",
        ),
        (
            "<!-- of: a | n -->\n<!-- of: b | n -->1<!-- end -->",
            "line 1: a place within a place",
        ),
    ] {
        let error = rewritten(page, |_| Ok(String::new())).expect_err(page);
        assert_eq!(error, why);
    }
}
