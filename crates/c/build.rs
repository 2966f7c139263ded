//! How the shared library is linked.

fn main() {
    let link = format!(
        "{}/link",
        std::env::var("CARGO_MANIFEST_DIR").expect("cargo's")
    );
    println!("cargo:rerun-if-changed={link}");
    for argument in [
        // `link/ld.bfd` puts `link/scalevm.map` in the place of rustc's list of symbols, which has
        // no versions, and which linkers refuse to combine with one that has.
        &format!("-B{link}"),
        "-fuse-ld=bfd",
        "-Wl,-soname,libscalevm.so.0",
        // A thread that ends calls the library, even if that was closed.
        "-Wl,-z,nodelete",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}
