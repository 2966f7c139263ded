use super::*;
use crate::event::{Mapping, Thread};
use crate::tasks::Family;

// A leaf, its caller without a frame, and the caller's caller with one, as compilers make them.
std::arch::global_asm!(
    ".pushsection .text.unwound,\"ax\",@progbits",
    "unwound_leaf: .cfi_startproc",
    "nop",
    "ret",
    ".cfi_endproc",
    "unwound_middle: .cfi_startproc",
    "sub $24, %rsp",
    ".cfi_adjust_cfa_offset 24",
    "call unwound_leaf",
    "unwound_in_middle:",
    "add $24, %rsp",
    ".cfi_adjust_cfa_offset -24",
    "ret",
    ".cfi_endproc",
    "unwound_framed: .cfi_startproc",
    "push %rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset %rbp, 0",
    "mov %rsp, %rbp",
    ".cfi_def_cfa_register %rbp",
    "sub $64, %rsp",
    "call unwound_middle",
    "unwound_in_framed:",
    "leave",
    ".cfi_def_cfa %rsp, 8",
    "ret",
    ".cfi_endproc",
    ".popsection",
    options(att_syntax)
);

unsafe extern "C" {
    static unwound_leaf: u8;
    static unwound_in_middle: u8;
    static unwound_in_framed: u8;
}

/// Their addresses, which is all the tests need.
fn places() -> [u64; 3] {
    [
        &raw const unwound_leaf,
        &raw const unwound_in_middle,
        &raw const unwound_in_framed,
    ]
    .map(|label| label.addr() as u64)
}

fn callers(leaf: u64, registers: Registers, top: &[u64]) -> Callers {
    let mut files = Files::default();
    let own = std::process::id();
    let family = Family::scan(&[own], &mut files);
    let image = &family
        .watched(Thread { pid: own, tid: own })
        .expect("this process")
        .image;
    let chain = Chain {
        registers: Some(registers),
        top: top.into(),
        ..Chain::default()
    };
    Unwinder::default().callers(image, &files, leaf, &chain)
}

const STACK: u64 = 0x7fff_0000;

fn registers() -> Registers {
    Registers {
        frame: STACK + 0x80,
        stack: STACK,
        ..Registers::default()
    }
}

#[test]
fn what_has_no_frame_is_found_up_to_the_first_that_has_one() {
    let [leaf, middle, framed] = places();
    let found = callers(leaf, registers(), &[middle, 1, 2, 3, framed, 5]);
    assert_eq!((found.returns, found.framed), (vec![middle, framed], true));
}

#[test]
fn a_function_with_a_frame_needs_no_help() {
    let [.., framed] = places();
    let found = callers(framed, registers(), &[1, 2, 3]);
    assert_eq!((found.returns, found.framed), (vec![], true));
}

#[test]
fn the_stack_may_end_too_early_or_hold_what_is_no_code() {
    let [leaf, middle, _] = places();
    let found = callers(leaf, registers(), &[middle, 1, 2]);
    assert_eq!((found.returns, found.framed), (vec![middle], true));
    let found = callers(leaf, registers(), &[]);
    assert_eq!((found.returns, found.framed), (vec![], true));
    let found = callers(leaf, registers(), &[0x10, 1, 2, 3, 4, 5]);
    assert_eq!(found.returns, [0x10], "where it goes on is not known");
}

#[test]
fn what_has_no_table_has_no_callers() {
    let (mut image, mut files) = (Image::new(), Files::default());
    for path in [
        "/nowhere/to/be/found",
        "//anon",
        "[heap]",
        "/proc/self/status",
    ] {
        let mapping = Mapping {
            start: 0x1000,
            end: 0x2000,
            offset: 0,
            path: path.into(),
        };
        image.map(&mapping, &mut files);
        let chain = Chain {
            registers: Some(registers()),
            top: [0x1100, 0x1200].into(),
            ..Chain::default()
        };
        let found = Unwinder::default().callers(&image, &files, 0x1010, &chain);
        assert_eq!((found.returns, found.framed), (vec![], true), "{path}");
    }
}

#[test]
fn the_kernels_page_has_a_table() {
    // Not every kernel maps it; where it is mapped, it has functions.
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    if maps.contains("[vdso]") {
        let table = Table::of("[vdso]").expect("a table");
        assert!((0..0x4000).any(|offset| table.rule(offset).is_some()));
    }
}
