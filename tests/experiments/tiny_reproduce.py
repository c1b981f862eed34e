"""`labelmend reproduce` at the tiny scale, in a process of its own."""

import sys

import conftest

from labelmend.cli import main
from labelmend.experiments import protocol

if __name__ == "__main__":
    protocol.SCALES["small"] = conftest.tiny_scale()
    sys.argv = ["labelmend", "reproduce", *sys.argv[1:]]
    main()
