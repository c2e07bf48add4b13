import sys
from pathlib import Path

from . import make

print(make(Path(sys.argv[1])))
