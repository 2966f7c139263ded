//! Functions by the modules that they are in.

/// A function's package, and its path from there: `vm::space::unmap::remove` for a function
/// `remove` in `vm/src/space/unmap.rs:45`; none without a file.
pub fn qualified<'a>(function: &str, place: &'a str) -> Option<(&'a str, String)> {
    let (file, _) = place.rsplit_once(".rs")?;
    let (folder, file) = file.rsplit_once("/src/")?;
    let package = folder.rsplit('/').next().unwrap_or_default();
    let modules = file
        .split('/')
        .filter(|part| !["lib", "mod", "main"].contains(part));
    let path: Vec<&str> = std::iter::once(package).chain(modules).collect();
    let plain = without_types(function);
    let function = plain.rsplit("::").next().unwrap_or_default();
    let path = format!("{}::{function}", path.join("::"));
    (!function.is_empty()).then_some((package, path))
}

/// A path without the parts in angle brackets: the types a function is made for
/// are clear from its callers.
fn without_types(path: &str) -> String {
    let mut depth = 0;
    let outside = |&letter: &char| {
        depth += i32::from(letter == '<');
        let outside = depth == 0;
        depth -= i32::from(letter == '>');
        outside
    };
    // The arrow of a function type closes nothing.
    path.replace("->", "").chars().filter(outside).collect()
}
