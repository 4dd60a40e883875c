"""Lets PyPI's torch for Linux run on the CPU without gigabytes of CUDA libraries.

That build links all of CUDA, and its functions are bound when it is loaded. With empty libraries in
their place, and functions bound when they are called, everything that needs no GPU works.
"""

import site
import subprocess
import sys
from pathlib import Path

# What libtorch_cuda.so and libtorch_python.so of torch 2.11 link, except the two small libraries
# that are installed.
EMPTY = [
    "libcublas.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libcufft.so.12", "libcufile.so.0",
    "libcurand.so.10", "libcusparse.so.12", "libcusparseLt.so.0", "libnccl.so.2",
    "libnvshmem_host.so.3",
]

packages = Path(site.getsitepackages()[0])
folder = packages / "nvidia/cu13/lib"
if (packages / "torch/lib/libtorch_cuda.so").exists():
    for name in EMPTY:
        if not (folder / name).exists():
            compiler = ["cc", "-shared", "-x", "c", "/dev/null", f"-Wl,-soname,{name}", "-o", name]
            subprocess.run(compiler, cwd=folder, check=True)
    # Python binds all functions of a module that it imports, unless it is told otherwise.
    (packages / "cpu_torch.pth").write_text("import os, sys; sys.setdlopenflags(os.RTLD_LAZY)\n")
version = "import torch; print(torch.__version__, torch.ones(2).sum().item())"
sys.exit(subprocess.run([sys.executable, "-c", version]).returncode)
