"""Worker nodes for tests: machines of ``hosts_lab`` with a real kubelet and containerd, on the networks of a home.

machines  ``NodeMachines``: the machines, and how each joins; ``setup.sh`` is what an administrator does on each
programs  kubelet, kubeadm, containerd, runc and CNI plugins, each built once of its published Go module
images    the one image that all containers run, made by the test; ``work`` is the program in it
joined    nodes that have joined a plane, by those ways
steady    what must not change on nodes, and must go on working, while the plane is changed
streams   calls of kubectl that stay open, and what becomes of them
"""
