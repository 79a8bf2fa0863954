"""`python -m dipriv` is the command `dipriv`."""

from dipriv._base.extras import needs_extra
from dipriv.errors import MissingDependencyError


def main() -> None:
    """Run the command line, or name the extra that it needs."""
    try:
        with needs_extra("cli", "the command line"):
            from dipriv import cli
    except MissingDependencyError as error:
        raise SystemExit(f"Error: {error}") from None
    cli.main()


if __name__ == "__main__":
    main()
