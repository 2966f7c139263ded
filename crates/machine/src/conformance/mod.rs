//! Whether a machine keeps the contract.
