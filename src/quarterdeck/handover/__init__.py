"""The history of controller sets: which manager acted when, from lock history and audit logs. Pure."""
