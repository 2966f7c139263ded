//! This computer: its fitness for measurements ([`doctor`]), and its costs, as a machine profile
//! ([`calibrate`]).

pub mod calibrate;
pub mod doctor;
