//! The PCI bus's configuration space, by its two ports.

use virtio_drivers::transport::pci::bus::{ConfigurationAccess, DeviceFunction};
use x86_64::instructions::port::Port;

/// The port that selects a register; the next port has its value.
const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;
/// Bit of an address: it names a register.
const ENABLED: u32 = 1 << 31;

/// The ports. One CPU uses them, at the start.
pub(super) struct Ports;

/// Names a register.
fn select(device: DeviceFunction, register: u8) {
    let [bus, number, function] = [device.bus, device.device, device.function].map(u32::from);
    let address = ENABLED | bus << 16 | number << 11 | function << 8 | u32::from(register & !3);
    // SAFETY: the port names a register and touches no memory.
    unsafe { Port::new(ADDRESS).write(address) };
}

impl ConfigurationAccess for Ports {
    fn read_word(&self, device: DeviceFunction, register: u8) -> u32 {
        select(device, register);
        // SAFETY: configuration registers have no side effects when they are read.
        unsafe { Port::new(DATA).read() }
    }

    fn write_word(&mut self, device: DeviceFunction, register: u8, value: u32) {
        select(device, register);
        // SAFETY: the driver places nothing where memory lies.
        unsafe { Port::new(DATA).write(value) };
    }

    unsafe fn unsafe_clone(&self) -> Self {
        Ports
    }
}
