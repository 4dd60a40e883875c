//! Lets this package's tests and examples find libtorch at run time, and passes its folder to
//! dependents.
//!
//! Cargo's link arguments do not reach the programs of dependents. A package with its own program
//! reads `DEP_TORCH_FEED_LIB_DIR` in its build script and sets the same three arguments.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Set by torch-sys, which resolves LIBTORCH, LIBTORCH_LIB, LIBTORCH_USE_PYTORCH and the
    // system's folders. Not set if torch-sys is built only for documentation, which links nothing.
    println!("cargo::rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    let Some(lib_dir) = std::env::var_os("DEP_TCH_LIBTORCH_LIB") else { return };
    let Some(lib_dir) = lib_dir.to_str() else {
        println!("cargo::error=the path of libtorch is not UTF-8: {}", lib_dir.display());
        return;
    };
    println!("cargo::metadata=lib_dir={lib_dir}");
    println!("cargo::rustc-link-arg=-Wl,-rpath,{lib_dir}");
    // Links all of libtorch: no symbol names libtorch_cuda, so the linker would drop it as not
    // needed, and torch would then see no GPU. In a libtorch for the CPU this adds nothing.
    println!("cargo::rustc-link-arg=-L{lib_dir}");
    println!("cargo::rustc-link-arg=-Wl,--no-as-needed,-ltorch,--as-needed");
}
