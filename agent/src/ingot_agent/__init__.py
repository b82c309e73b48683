"""What Ingot loads inside ironic-python-agent on a CoreOS ramdisk: the deploy step that installs CoreOS.

    manager       the hardware manager that the agent loads; the only module that knows the agent
    order         what is to be installed, read from the step's arguments, the node and the environment
    ignition      the config that the installed system gets: the user's, with what is ours beneath it
    kargs         kernel arguments, one by one
    checksum      which hash an image has to have
    download      opening URLs, with the agent's trust
    relay         hands an image on to coreos-installer, and its end only when the hash is right
    command       the words of the coreos-installer command
    transcript    what coreos-installer says: how far it is, why it failed
    installing    the attempts, each from the beginning
    host          the CoreOS that runs: its build, its name
    redaction     what must not reach a log
    errors        what can go wrong

Everything but `manager` is standard library alone. User data is never logged, and never part of a message.
"""

VERSION = "0.1.0"
