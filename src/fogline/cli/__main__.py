"""``python -m fogline.cli``."""

from fogline.cli import main

if __name__ == "__main__":
    main()
