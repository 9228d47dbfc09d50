# SPDX-License-Identifier: Apache-2.0
"""Starts scripts in processes that have imported torch already: that takes each rank seconds of a processor's time.

`warm_starts.py LISTENER` imports torch once, and serves at the socket with this descriptor. `warm_starts.py SOCKET
SCRIPT ARGUMENTS` then stands for `python SCRIPT ARGUMENTS`: the first process forks one that takes over the second
one's environment, namespaces, folder and output, and runs the script as `__main__`. The second process ends as the
script does, and the script is killed if the second process is.

Processes of one start have the same hashes of strings: that ranks agree whatever these are, only cold starts show.
"""

import array
import atexit
import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import threading

NAMESPACES = ("/proc/self/ns/net", "/proc/self/ns/mnt")
PART_BYTES = 1 << 20
PR_SET_PDEATHSIG = 1


def serve(listener: socket.socket) -> list[str]:
    """Returns in each process that it forks, with the script and its arguments. Ends when its stdin does."""
    import_torch()
    running: dict[int, tuple[int, socket.socket]] = {}  # By pidfd: the process, and who has asked for it.
    while True:
        poll = select.poll()
        poll.register(0, select.POLLHUP)
        for one in (listener, *running):
            poll.register(one, select.POLLIN)
        by_asker = {asker.fileno(): pidfd for pidfd, (_, asker) in running.items()}
        for asker in by_asker:
            poll.register(asker, select.POLLRDHUP)
        for ready, _ in poll.poll():
            if ready == 0:
                os._exit(0)  # It takes along what it has forked.
            elif ready in running:
                pid, asker = running.pop(ready)
                os.close(ready)
                with contextlib.suppress(OSError), asker:
                    asker.sendall(str(os.waitpid(pid, 0)[1]).encode())
            elif ready in by_asker:
                with contextlib.suppress(OSError):
                    signal.pidfd_send_signal(by_asker[ready], signal.SIGKILL)
            elif ready == listener.fileno():
                asker = listener.accept()[0]
                if (pid := os.fork()) == 0:
                    listener.close()
                    return become(asker)
                running[os.pidfd_open(pid)] = pid, asker


def import_torch() -> None:
    os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # `become` does that, with the script's environment.
    import torch._dynamo  # DDP and optimizers import it.
    import torch.distributed  # noqa: F401

    gc.freeze()


def become(asker: socket.socket) -> list[str]:
    import ctypes

    import torch

    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.setsid()
    message, [(_, _, descriptors)], _, _ = asker.recvmsg(PART_BYTES, socket.CMSG_SPACE(5 * 4))
    while not message.endswith(b"\n"):
        message += asker.recv(PART_BYTES)
    asked = json.loads(message)
    net, mount, *files = array.array("i", descriptors)
    for namespace in (net, mount):
        if libc.setns(namespace, 0) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    if os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1":
        torch._import_device_backends()  # as the end of `import torch` does
    return asked["argv"]


def ask(path: str, argv: list[str]) -> None:
    """Ends this process as the script ends."""
    asker = socket.socket(socket.AF_UNIX)
    asker.connect(path)
    files = array.array("i", [*(os.open(one, os.O_RDONLY) for one in NAMESPACES), 0, 1, 2])
    asked = {"argv": argv, "environment": dict(os.environ), "folder": os.getcwd()}
    line = json.dumps(asked).encode() + b"\n"
    sent = asker.sendmsg([line], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    asker.sendall(line[sent:])
    os.closerange(0, asker.fileno())  # What reads its output waits for the script alone.
    status = int(asker.recv(16) or signal.SIGKILL)
    if os.WIFSIGNALED(status):
        with contextlib.suppress(OSError):
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def run(argv: list[str]) -> None:
    """The script, to its end. What only the end of an interpreter does is left out: it takes longer than most scripts,
    and touches all pages of the memory that is shared with the first process."""
    sys.argv, sys.path[0] = argv, os.path.dirname(argv[0])
    main = sys.modules["__main__"] = type(sys)("__main__")
    main.__dict__.update(__file__=argv[0], __builtins__=__builtins__)
    code = 0
    try:
        with open(argv[0], encoding="utf-8") as source:
            exec(compile(source.read(), argv[0], "exec", dont_inherit=True), main.__dict__)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.last_type, sys.last_value, sys.last_traceback = sys.exc_info()
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


if len(sys.argv) > 2:
    ask(sys.argv[1], sys.argv[2:])
else:
    run(serve(socket.socket(fileno=int(sys.argv[1]))))
