"""Start the simulator; see `runner`."""

import sys

from tests.ledger.simulator.runner import main

if __name__ == "__main__":
    sys.exit(main())
