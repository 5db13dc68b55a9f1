"""All commands by the panels of the help, known without loading the modules that define them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """A command, or a group of commands: the module in ``commands`` that defines it, and its line in the help."""

    module: str
    summary: str
    is_group: bool = False


#: The panels of the help, in order. Only the module of the command that is run is loaded, and none for the help: all
#: of them take longer to load than a look at a plane takes.
PANELS = {
    "Create": {
        "demo": Entry("demo", "Create a plane, migrate it live under load, and report what clients saw."),
        "create": Entry("planes", "Create a control plane without writing a file."),
        "apply": Entry("planes", "Create or change the planes and sites that a file declares."),
        "kubeconfig": Entry("access", "Print a kubeconfig for kubectl. It stays valid during and after a migration."),
        "node": Entry("nodes", "List worker nodes, make join tokens, approve certificates.", is_group=True),
    },
    "Change": {
        "plan": Entry("planes", "Show the steps of a change and the quorum margin at each, and change nothing."),
        "migrate": Entry("moves", "Migrate a plane live to another site."),
        "scale": Entry("moves", "Change the number of replicas of a plane while it serves."),
        "upgrade": Entry(
            "upgrades",
            "Upgrade a plane to another version of Kubernetes or etcd, and take that back ('upgrade NAME' is short for"
            " 'upgrade run NAME').",
            is_group=True,
        ),
        "replica": Entry("replicas", "List, replace and cordon the replicas of a plane.", is_group=True),
        "certs": Entry(
            "certs",
            "List and renew the certificates of a plane, and rotate its certificate authorities.",
            is_group=True,
        ),
        "keys": Entry("keys", "Rotate the keys of a plane.", is_group=True),
        "controllers": Entry("controllers", "Move sets of controllers from one manager to another.", is_group=True),
        "pause": Entry("planes", "Stop changing a plane until 'resume', or for a given time. The plane keeps running."),
        "resume": Entry("planes", "End a pause, and wait until the plane is settled."),
        "delete": Entry("planes", "Delete a plane and all its data."),
    },
    "Watch": {
        "get": Entry("records", "List planes, or print the spec of one."),
        "status": Entry(
            "looks",
            "Show the health of a plane: members, leaders, load balancers, operations, and the failures it survives.",
        ),
        "wait": Entry("moves", "Wait until a plane is settled: follow the process that drives it, or drive it here."),
        "events": Entry("records", "Show the events of a plane or of all planes; repeats are counted."),
        "logs": Entry("planes", "Print the last log lines of the programs of a plane."),
        "probe": Entry("probes", "Measure a plane with real clients from outside."),
        "report": Entry("reports", "Print the report of an operation: its steps, and what clients saw."),
        "history": Entry("records", "List the operations of a plane and their outcomes."),
    },
    "Recover": {
        "abort": Entry("moves", "Undo the operation in progress. Safe at any moment."),
        "recover": Entry(
            "recovery", "Recover a plane that lost its etcd quorum for good from a surviving member. Old data is kept."
        ),
        "failover": Entry(
            "failover", "Continue a plane that lost its site from its standby, at the site of that. Old data is kept."
        ),
        "backup": Entry("backups", "Take, list, verify and look into the backups of a plane.", is_group=True),
        "restore": Entry(
            "restores",
            "Restore the etcd of a plane to an earlier moment. The present data is kept on its machines.",
        ),
        "etcd": Entry("etcd", "Check and repair the etcd of a plane.", is_group=True),
        "drill": Entry(
            "drills",
            "Inject a real fault into a plane, measure the impact, and undo it ('drill NAME' is short for"
            " 'drill run NAME').",
            is_group=True,
        ),
    },
    "Sites": {
        "site": Entry("sites", "Add, check, drain and remove sites and their machines.", is_group=True),
    },
    "Run": {
        "serve": Entry(
            "serve", "Run the manager: reconcile and heal all planes until stopped. Planes keep running without it."
        ),
        "service": Entry("services", "Install the manager as a service that starts at boot.", is_group=True),
        "home": Entry("homes", "Encrypt the private keys of all planes with a key file.", is_group=True),
        "upstream": Entry("upstreams", "Fetch and list the upstream Kubernetes and etcd programs.", is_group=True),
    },
}
