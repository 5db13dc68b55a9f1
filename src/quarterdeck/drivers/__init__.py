"""Which drivers there are, and how each is opened: the one place that knows their classes. All that comes out is ports.

sites     kinds of sites, by ``spec.driver`` of their resource; local, networks: the kind that there is
stores    kinds of stores
names     what a plane's name is kept by, by the mode of its endpoint
balancers what leads clients to a plane's apiservers
servers   etcd and the apiservers of a plane, as its manager reaches them
"""
