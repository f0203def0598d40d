import sys

from horizon_rl.cli import main

sys.exit(main())
