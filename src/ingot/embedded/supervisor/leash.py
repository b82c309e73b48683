"""Started in a part's place: ties the process to the life of its supervisor, then becomes the part.

Run as a script, `leash.py SUPERVISOR-PID COMMAND ARGUMENT…`, by the plain interpreter; it imports nothing of ours because it
runs before every part. The kernel then kills the part when the supervisor's thread that started it ends, however that happens.
The tie survives exec but not fork: children of a part are looked after by `remains`.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
CANNOT_EXECUTE = 126


def main() -> None:
    supervisor, command = int(sys.argv[1]), sys.argv[2:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        sys.exit(f"cannot tie {command[0]} to its supervisor: {os.strerror(ctypes.get_errno())}")
    # It may have died before the tie was made; then nobody would ever end us.
    if os.getppid() != supervisor:
        sys.exit(CANNOT_EXECUTE)
    try:
        os.execvp(command[0], command)  # noqa: S606 - becoming another program is its purpose
    except OSError as problem:
        print(f"cannot start {command[0]}: {problem.strerror}", file=sys.stderr)
        sys.exit(CANNOT_EXECUTE)


if __name__ == "__main__":
    main()
