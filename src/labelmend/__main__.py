"""The `labelmend` command: the library's own commands and, beside them, the paper's reproduction."""

from .faces.cli import RESEARCH, add, run_command
from .reproduce.command import reproduce

add(reproduce, panel=RESEARCH)


def main() -> None:
    """Run the command line."""
    run_command()


if __name__ == "__main__":
    main()
