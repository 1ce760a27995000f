# SPDX-License-Identifier: MIT
"""record_trace.py LIBRARY WORD...: runs the recorder of dotnet-trace collect-linux, whose words it takes. Prints "started", and stops with its input.

The library is one-collect's, as the package of dotnet-trace has it. Its callback gets a kind of output and a text, and returns 1 to stop.
"""
import ctypes
import select
import sys

STARTED = 4


def main():
    library = ctypes.CDLL(sys.argv[1])
    callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t)

    def output(kind, _text, _size):
        if kind == STARTED:
            print("started", flush=True)
        return 1 if select.select([sys.stdin], [], [], 0)[0] else 0

    words = " ".join(sys.argv[2:]).encode()
    library.RecordTrace.argtypes = [ctypes.c_char_p, ctypes.c_size_t, callback]
    return library.RecordTrace(words, len(words), callback(output))


if __name__ == "__main__":
    sys.exit(main())
