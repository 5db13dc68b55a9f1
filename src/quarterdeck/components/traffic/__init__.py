"""What leads clients to apiservers: load balancers, DNS servers, virtual addresses."""
