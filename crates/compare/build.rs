//! Lets this package's tests find libtorch when they run; torch-feed's build script gives the
//! reasons.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DEP_GRID_POINT_LIB_DIR");
    let Ok(folder) = std::env::var("DEP_GRID_POINT_LIB_DIR") else { return };
    println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    println!("cargo::rustc-link-arg=-L{folder}");
    println!("cargo::rustc-link-arg=-Wl,--no-as-needed,-ltorch,--as-needed");
}
