//! A disk: the first virtio block device on the first PCI bus. `virtio-drivers` speaks with it.
//!
//! The device sends no interrupts: a transfer polls until it is done, and the caller says how to
//! wait in between. A transfer needs no memory, so that a transfer that frees memory cannot fail
//! for lack of it.

mod pci;
mod shared;

use crate::Metal;
use alloc::boxed::Box;
use core::ptr;
use machine::{Frame, Memory, PAGE_SIZE};
use pci::Ports;
use shared::Shared;
use virtio_drivers::device::blk::{BlkReq, BlkResp, SECTOR_SIZE, VirtIOBlk};
use virtio_drivers::transport::DeviceType;
use virtio_drivers::transport::pci::bus::{Command, PciRoot};
use virtio_drivers::transport::pci::{PciTransport, virtio_device_type};

pub use virtio_drivers::Error as DiskError;

/// Requests at once: the driver's queue has 16 places, of which each takes three.
const TOGETHER: usize = 5;
/// Sectors of a page.
const SECTORS: usize = PAGE_SIZE / SECTOR_SIZE;

/// A disk, page by page.
pub struct Disk {
    device: VirtIOBlk<Shared, PciTransport>,
    /// The device's buffers beside pages; on the heap, where it finds them.
    requests: Box<[Request; TOGETHER]>,
}

#[derive(Default)]
struct Request {
    head: BlkReq,
    response: BlkResp,
}

/// Where pages go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// From the disk to memory. The frames are the caller's alone.
    Read,
    /// From memory to the disk. The frames are not written meanwhile.
    Write,
}

/// A request that is under way: its token, and its frames, which follow one another.
#[derive(Clone, Copy)]
struct Begun<'a> {
    token: u16,
    frames: &'a [Frame],
}

impl Disk {
    /// The disk, if there is one.
    ///
    /// # Errors
    /// If it does not answer as such a device does.
    pub fn find() -> Result<Option<Self>, DiskError> {
        let mut root = PciRoot::new(Ports);
        let mut devices = root.enumerate_bus(0);
        let is_disk = |info: &_| virtio_device_type(info) == Some(DeviceType::Block);
        let Some((place, _)) = devices.find(|(_, info)| is_disk(info)) else {
            return Ok(None);
        };
        root.set_command(place, Command::MEMORY_SPACE | Command::BUS_MASTER);
        let transport = PciTransport::new::<Shared, _>(&mut root, place);
        let mut device = VirtIOBlk::new(transport.map_err(|_| DiskError::Unsupported)?)?;
        device.disable_interrupts();
        let requests = Box::default();
        Ok(Some(Disk { device, requests }))
    }

    /// How many pages it has.
    pub fn pages(&self) -> u64 {
        self.device.capacity() / SECTORS as u64
    }

    /// Moves `frames` to or from the pages `first`, `first + 1`, …; calls `wait` while the device
    /// works.
    ///
    /// # Errors
    /// If the device refuses; then the content where the pages go is undefined.
    pub fn transfer(
        &mut self,
        transfer: Transfer,
        first: u64,
        frames: &[Frame],
        wait: &mut dyn FnMut(),
    ) -> Result<(), DiskError> {
        let mut page = first;
        let mut runs = frames.chunk_by(|one, next| one.0 + 1 == next.0).peekable();
        while runs.peek().is_some() {
            let mut begun = [None; TOGETHER];
            let mut result = Ok(());
            for (index, place) in begun.iter_mut().enumerate() {
                let Some(frames) = runs.next() else { break };
                match self.begin(transfer, index, page, frames) {
                    Ok(token) => *place = Some(Begun { token, frames }),
                    Err(error) => result = Err(error),
                }
                page += frames.len() as u64;
            }
            // The device has the frames until it is done with them, whatever failed.
            self.finish(transfer, &mut begun, wait).and(result)?;
        }
        Ok(())
    }

    /// Gives the device a request; returns its token.
    fn begin(
        &mut self,
        transfer: Transfer,
        index: usize,
        page: u64,
        frames: &[Frame],
    ) -> Result<u16, DiskError> {
        let Request { head, response } = &mut self.requests[index];
        let (sector, content) = (page as usize * SECTORS, content(frames));
        // SAFETY: request and frames stay, and are not accessed, until `finish` has seen the token.
        unsafe {
            match transfer {
                Transfer::Read => self
                    .device
                    .read_blocks_nb(sector, head, &mut *content, response),
                Transfer::Write => self
                    .device
                    .write_blocks_nb(sector, head, &*content, response),
            }
        }
    }

    /// Waits until all requests are done.
    fn finish(
        &mut self,
        transfer: Transfer,
        begun: &mut [Option<Begun>; TOGETHER],
        wait: &mut dyn FnMut(),
    ) -> Result<(), DiskError> {
        let mut result = Ok(());
        while begun.iter().any(Option::is_some) {
            let Some(token) = self.device.peek_used() else {
                wait();
                continue;
            };
            let is_it = |place: &Option<Begun>| place.is_some_and(|it| it.token == token);
            let index = begun.iter().position(is_it);
            let index = index.expect("the disk does what was asked for");
            if let Some(done) = begun[index].take() {
                result = result.and(self.end(transfer, index, done));
            }
        }
        result
    }

    /// The device is done with a request.
    fn end(&mut self, transfer: Transfer, index: usize, done: Begun) -> Result<(), DiskError> {
        let Request { head, response } = &mut self.requests[index];
        let content = content(done.frames);
        // SAFETY: the request and frames that `begin` has given with this token.
        unsafe {
            match transfer {
                Transfer::Read => {
                    self.device
                        .complete_read_blocks(done.token, head, &mut *content, response)
                }
                Transfer::Write => self
                    .device
                    .complete_write_blocks(done.token, head, &*content, response),
            }
        }
    }
}

/// The bytes of frames that follow one another, in the direct map.
fn content(frames: &[Frame]) -> *mut [u8] {
    let first = Metal.direct_map(frames[0]).as_ptr();
    ptr::slice_from_raw_parts_mut(first, frames.len() * PAGE_SIZE)
}
