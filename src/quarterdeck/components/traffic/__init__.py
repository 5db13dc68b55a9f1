"""Programs for traffic: load balancers, DNS servers, virtual IPs."""
