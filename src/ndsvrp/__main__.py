"""`python -m ndsvrp` is `nds`."""

from ndsvrp.cli import main

if __name__ == "__main__":
    main()
