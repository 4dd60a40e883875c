//! Tables made for one purpose each.
