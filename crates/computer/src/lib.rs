//! This computer: whether one can measure on it ([`doctor`]), and what it costs, as a machine profile
//! ([`calibrate`]).

pub mod calibrate;
pub mod doctor;
