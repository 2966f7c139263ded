//! This computer: whether it is fit for measurements ([`doctor`]), and its costs, as a machine
//! profile ([`calibrate`]).

pub mod calibrate;
pub mod doctor;
