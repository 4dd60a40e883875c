//! Lets this package's tests and examples find libtorch when they run, and tells dependents where it is.
//!
//! What cargo calls link arguments does not reach the programs of dependents. A package with a program of its own
//! reads `DEP_TORCH_FEED_LIB_DIR` in its build script and gives the same three arguments.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // From torch-sys, which resolves LIBTORCH, LIBTORCH_LIB, LIBTORCH_USE_PYTORCH and the system's folders.
    // It is not set where torch-sys is built for documentation only, which links nothing.
    println!("cargo::rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    let Some(lib_dir) = std::env::var_os("DEP_TCH_LIBTORCH_LIB") else { return };
    let Some(lib_dir) = lib_dir.to_str() else {
        println!("cargo::error=the path of libtorch is not UTF-8: {}", lib_dir.display());
        return;
    };
    println!("cargo::metadata=lib_dir={lib_dir}");
    println!("cargo::rustc-link-arg=-Wl,-rpath,{lib_dir}");
    // libtorch as a whole: no symbol names libtorch_cuda, so the linker would leave it out as not needed, and torch
    // would then see no GPU. In a libtorch for the CPU this adds nothing.
    println!("cargo::rustc-link-arg=-L{lib_dir}");
    println!("cargo::rustc-link-arg=-Wl,--no-as-needed,-ltorch,--as-needed");
}
