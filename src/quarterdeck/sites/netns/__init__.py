"""Isolation ``netns``: each machine of a local site is a network namespace of its own.

    keeper     a detached process that holds every namespace of one home, and its guard
    wiring     the network that the keeper builds: a router, a bridge per site, a namespace per machine
    forwarder  delays packets between sites
    control    requests of other processes to the keeper
    enter      runs a program inside one of the namespaces
    lab        the interface for Python code; ``isolation`` puts it behind the port of the local driver
    layout     PURE: addresses, names, and the layout of a lab
    processes  the processes inside

Everything happens inside a user namespace of the lab's own, as root and as any other user. The host's own
network is never touched, nothing is mounted, and nothing is left when the keeper has ended.
"""
