"""``python -m bench_agent.worker``: what the agent starts for each repeat."""

import sys

from .main import main

sys.exit(main())
