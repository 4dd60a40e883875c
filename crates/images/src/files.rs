//! Files of cubes: Tivita, blosc with a pickle header, and packed.
