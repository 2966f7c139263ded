//! reclaim1: a working set of 128 MiB that does not stay in memory.
//!
//! Each page is read (it must hold the value written a lap ago), written, and paged out, page after
//! page, lap after lap. So an iteration pages one page in and one out. A system with less memory
//! than that must reclaim pages anyway. One without swap space can only try: the kernel looks the
//! page up, finds no place for it, and keeps it.

use crate::steps::{expect_byte, with_mapping};
use crate::{Backing, Counter, Error, Feature, Needs, SIZE, System, Workload};

pub(crate) const WORKLOAD: Workload = Workload {
    name: "reclaim1",
    description: "Anonymous memory madvise(MADV_PAGEOUT) and use again of 128MB",
    unit: "pages",
    needs: Needs {
        memory: SIZE,
        features: &[Feature::PageOut],
        ..Needs::NOTHING
    },
    size: SIZE,
    body: crate::Body::Reclaim1,
};

pub(crate) fn run<S: System>(system: &mut S, tick: &Counter, size: usize) -> Result<(), Error> {
    let page = system.page_size();
    with_mapping(system, size, Backing::Anonymous, |system, start| {
        let (mut lap, mut before) = (1, None);
        loop {
            for address in (start..start + size).step_by(page) {
                if let Some(before) = before {
                    expect_byte(system, address, before)?;
                }
                system.write(address, lap)?;
                system.page_out(address, page)?;
                if !tick.add(1) {
                    return Ok(());
                }
            }
            before = Some(lap);
            lap = lap % u8::MAX + 1; // never 0, the content of a lost page
        }
    })
}
