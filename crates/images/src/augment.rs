//! Random affine maps and flips of images and masks.
