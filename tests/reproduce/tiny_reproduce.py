"""`labelmend reproduce` at the tiny scale, in a process of its own."""

import sys

import conftest

from labelmend.__main__ import main
from labelmend.reproduce import protocol

if __name__ == "__main__":
    protocol.SCALES["small"] = conftest.tiny_scale()
    sys.argv = ["labelmend", "reproduce", *sys.argv[1:]]
    main()
