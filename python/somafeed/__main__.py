"""`python -m somafeed` is the command `somafeed`."""

import sys

from somafeed.command_line import main

sys.exit(main())
