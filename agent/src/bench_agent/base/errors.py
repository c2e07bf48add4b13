"""Problems a person can mend. Each message says what is wrong and what to do."""


class UsageProblem(Exception):
    """What was asked for cannot be done; the message says what to ask instead."""


class HomeProblem(Exception):
    """A file of the agent's folder cannot be used; the message says what mends it."""


class DataProblem(Exception):
    """A data set is missing, wrong or cannot be brought; the message says what mends it."""


class ServerUnreachable(Exception):
    """No usable answer from the server; results stay in the outbox."""


class LogContradiction(ServerUnreachable):
    """The server's log is not the one that was seen before; nothing more is sent to it."""
