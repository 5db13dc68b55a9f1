"""All drivers, and how to open each: the one place that knows their classes. Callers get ports.

sites     kinds of sites, by ``spec.driver`` of their resource; local, networks: those of this host
stores    kinds of stores
names     DNS drivers of a plane's name, by the mode of its endpoint
balancers what leads clients to a plane's apiservers
servers   etcd and the apiservers of a plane, as its manager reaches them
"""
