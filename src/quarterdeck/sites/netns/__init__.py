"""Isolation ``netns``: each machine of a local site is a network namespace of its own.

    keeper     a detached process that holds every namespace of one home, and its guard
    wiring     what the keeper builds: a router, a bridge per site, a namespace per machine
    forwarder  delays what goes from one site to another
    control    how other processes ask the keeper for something
    enter      runs a program inside one of the namespaces
    lab        the face for Python code; ``isolation`` puts it behind the port of the local driver
    layout     PURE: addresses, names, and what a lab should look like
    processes  who runs inside

Everything happens inside a user namespace of the lab's own, as root and as anybody else alike. The network that
the host has is never touched, nothing is mounted, and nothing is left when the keeper is gone.
"""
