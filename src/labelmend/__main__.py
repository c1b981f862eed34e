"""The `labelmend` command: the library's own commands and, beside them, the paper's reproduction."""

from .faces.cli import app, run_command
from .reproduce.command import reproduce

app.command()(reproduce)


def main() -> None:
    """Run the command line."""
    run_command()


if __name__ == "__main__":
    main()
