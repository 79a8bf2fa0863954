"""`python -m dipriv` is the command `dipriv`."""

from dipriv.cli import main

if __name__ == "__main__":
    main()
