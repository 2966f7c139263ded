//! A disk: the first virtio block device on the first PCI bus, driven by `virtio-drivers`.
//!
//! The device sends no interrupts: a transfer polls until it is done, and the caller says how to
//! wait in between. A transfer allocates no memory, so one that is to free memory cannot fail for
//! lack of it.

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

/// Requests at a time: the driver's queue has 16 places, and each request takes three.
const TOGETHER: usize = 5;
/// Sectors of a page.
const SECTORS: usize = PAGE_SIZE / SECTOR_SIZE;

/// A disk, page by page.
pub struct Disk {
    device: VirtIOBlk<Shared, PciTransport>,
    /// The device's buffers other than pages, on the heap, where the device can access them.
    requests: Box<[Request; TOGETHER]>,
}

#[derive(Default)]
struct Request {
    head: BlkReq,
    response: BlkResp,
}

/// The direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// From the disk to memory. Only the caller accesses the frames.
    Read,
    /// From memory to the disk. No code writes the frames meanwhile.
    Write,
}

/// A request in progress: its token, and its frames, which are contiguous.
#[derive(Clone, Copy)]
struct Begun<'a> {
    token: u16,
    frames: &'a [Frame],
}

impl Disk {
    /// The disk, if there is one.
    ///
    /// # Errors
    /// If it does not answer like such a device.
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

    /// The number of pages of the disk.
    pub fn pages(&self) -> u64 {
        self.device.capacity() / SECTORS as u64
    }

    /// Moves `frames` to or from the pages `first`, `first + 1`, …; calls `wait` while the device
    /// works.
    ///
    /// # Errors
    /// If the device refuses; then the content of the target is undefined.
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
            // Even after a failure the device uses the frames until it is done with them.
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

    /// Ends a request that the device has done.
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

/// The bytes of contiguous frames, in the direct map.
fn content(frames: &[Frame]) -> *mut [u8] {
    let first = Metal.direct_map(frames[0]).as_ptr();
    ptr::slice_from_raw_parts_mut(first, frames.len() * PAGE_SIZE)
}
