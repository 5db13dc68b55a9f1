"""What users ask for: what a request comes to, before anything is changed."""
