"""The run in the parent process: start workers, monitor the machine, sign results."""
