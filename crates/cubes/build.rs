//! With the feature `torch`, lets the program, its tests and examples find libtorch when they run;
//! torch-feed's build script says why. Without the feature there is nothing to do.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DEP_TORCH_FEED_LIB_DIR");
    let Ok(folder) = std::env::var("DEP_TORCH_FEED_LIB_DIR") else { return };
    println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    println!("cargo::rustc-link-arg=-L{folder}");
    println!("cargo::rustc-link-arg=-Wl,--no-as-needed,-ltorch,--as-needed");
}
