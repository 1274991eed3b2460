"""What this machine is, and how programs are run on it for a comparison."""

import os
import pathlib
import platform
import subprocess
import tempfile

# Set by some for the sake of other programs; each library is to choose by itself.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")


def environment(threads, **more):
    """The environment of everything that is measured."""
    kept = {name: value for name, value in os.environ.items() if name not in UNSET}
    return {**kept, "OMP_NUM_THREADS": str(threads), **more}


def cpu():
    """The first processor's entries in /proc/cpuinfo."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").split("\n\n")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in text.splitlines())}


def cpu_has(flag):
    return flag in cpu().get("flags", "").split()


def caches():
    found = []
    for index in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            found.append(f"L{level} {size.replace('K', ' KiB')}")
    return ", ".join(found)


def describe():
    """Rows of a table: what, and its value."""
    release = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    avx = [flag for flag in ("avx2", "avx512f") if cpu_has(flag)]
    model = cpu()
    name = f"{model.get('model name', platform.machine())}, family {model.get('cpu family', '?')}"
    return [("processor", f"{name}, model {model.get('model', '?')}, {', '.join(avx) or 'without AVX2'}"),
            ("cores", str(len(os.sched_getaffinity(0)))), ("caches of a core", caches()),
            ("memory", f"{memory:.0f} GiB"), ("system", release)]


def mkl_override(folder):
    """A library that, loaded first, has MKL use its AVX-512 kernels on processors of other makers, where it would use
    those for AVX2. None where that changes nothing, or without a C compiler."""
    if cpu().get("vendor_id") == "GenuineIntel" or not cpu_has("avx512f"):
        return None
    library = pathlib.Path(folder) / "mkl_override.so"
    with tempfile.NamedTemporaryFile("w", suffix=".c") as source:
        source.write("int mkl_serv_intel_cpu_true(void) { return 1; }\n")
        source.flush()
        try:
            subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, source.name], check=True,
                           capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
    return library
