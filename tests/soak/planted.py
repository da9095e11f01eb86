"""Cases that go wrong on purpose, for the test of the campaign."""

import ctypes
import time


def case(seed: int):
    def run(number: int) -> str:
        if number == 2:
            ctypes.string_at(0)
        if number == 4:
            time.sleep(60)
        if number == 5:
            return str(1 // 0)
        if number == 6:
            bytearray(1 << 40)
        return "accepted"

    return run
