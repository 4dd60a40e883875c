#!/bin/sh
# Cargo's rustc-wrapper here: counts coverage in our crates and in the decoders that hostile bytes reach, and in nothing else.
# libFuzzer looks at every counter after every execution, so that instrumenting all dependencies would make it many times slower.
case " $* " in
*" --crate-name tiledb_native "* | *" --crate-name loader "* | *" --crate-name pipeline "* | *" --crate-name images "* | *" --crate-name anndata "* | *" --crate-name arrays "* | *" --crate-name hdf5 "* | *" --crate-name hdf5_reader "* | *" --crate-name sequences "* | *" --crate-name lz4_flex "* | *" --crate-name serde_json "*)
    exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
        -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
        -Cllvm-args=-sanitizer-coverage-trace-compares
    ;;
*) exec "$@" ;;
esac
