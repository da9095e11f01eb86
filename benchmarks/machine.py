"""What the benchmarks say of the machine they ran on."""

import platform
from pathlib import Path


def processor() -> str:
    """The name of the processor's model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
