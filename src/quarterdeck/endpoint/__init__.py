"""Load balancers and DNS: how clients find a plane."""
