//! Translations, tables, and the frames behind them.

mod freed_frames;
mod model;
mod tables;
